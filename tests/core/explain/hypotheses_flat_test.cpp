// Shapes that are not tensors of the model: placeholders, flat vectors, packed bits, copies.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/explain/explain.h"
#include "core/explain/support.h"

using namespace shw;
using namespace shw::test;

namespace {

struct FlatCase {
  Extents saved, current;
  std::string fqn, world = {}, first = {};
};

Explanation explained(const FlatCase& test) {
  std::optional<WorldSizes> worlds;
  if (!test.world.empty()) worlds = *parse_world_sizes(test.world);
  return explain("size mismatch for " + test.fqn + ": copying a param with shape torch.Size(" +
                     to_text(ExtentsView(test.saved)) +
                     ") from checkpoint, the shape in current model is torch.Size(" +
                     to_text(ExtentsView(test.current)) + ").",
                 worlds);
}

std::int64_t number(const Hypothesis& one, std::string_view key) {
  for (const auto& [found, value] : one.evidence) {
    if (found == key) return std::get<std::int64_t>(value);
  }
  return -1;
}

}  // namespace

TEST_CASE("the odd side of two shapes is named for what it is") {
  const std::vector<FlatCase> cases = {
      {{0}, {512, 3584}, "model.layers.26.self_attn.k_proj.weight", "", "H-Z checkpoint"},
      {{250112, 512}, {0}, "shared.weight", "", "H-Z request"},
      {{1}, {4096, 4096}, "model.layers.0.q_proj.weight", "", "H-Z checkpoint"},
      {{4096, 4096}, {1}, "model.layers.0.q_proj.weight", "", "H-Z request"},
      {{4096}, {0}, "model.norm.weight", "", "H-Z request"},
      {{65667584}, {128256, 2048}, "model.embed_tokens.weight", "", "H-F checkpoint"},
      {{65667584}, {128256, 2048}, "model.embed_tokens.weight", "4:1", "H-F checkpoint"},
      {{128256, 2048}, {65667584}, "model.embed_tokens.weight", "1:4", "H-F request"},
      {{2097152}, {4096, 4096}, "layers.0.q_proj.weight", "", "H-F checkpoint"},
      {{16777216}, {4096, 4096}, "layers.0.q_proj.weight", "", "H-F either"},
      {{1000}, {900}, "_fsdp_wrapped_module._flat_param", "", "H-F either"},
      {{8388608, 1}, {4096, 4096}, "model.layers.0.q_proj.weight", "", "H-Q either"},
      {{4096, 4096}, {8388608, 1}, "model.layers.0.q_proj.weight", "", "H-Q either"},
      {{1024}, {128}, "model.layers.0.self_attn.q_proj.bias", "", "H-K checkpoint"},
      {{64, 4096}, {16, 4096}, "l.0.q_proj.lora_A.weight", "", "H-R request"},
      {{8, 4096}, {8, 5120}, "l.0.q_proj.lora_A.weight", "", "H-AB request"},
      {{14336, 8}, {17408, 8}, "l.0.up_proj.lora_B.weight", "", "H-AB request"},
      {{16, 512}, {16, 4096}, "l.0.o_proj.lora_A.weight", "", "H-TP checkpoint"},
  };
  for (const FlatCase& test : cases) {
    CAPTURE(test.fqn);
    CAPTURE(test.first);
    CHECK(first(explained(test)) == test.first);
  }
}

TEST_CASE("one rank's quarter of an embedding and its norm is counted out") {
  // transformers #34080: 4 x 65,667,584 = 128,256 x 2,048 + 2,048
  Explanation explanation = explained({{65667584}, {128256, 2048}, "model.embed_tokens.weight"});
  REQUIRE_FALSE(explanation.hypotheses.empty());
  const Hypothesis& one = explanation.hypotheses[0];
  CHECK(number(one, "parts") == 4);
  CHECK(number(one, "elements") == 262668288);
  CHECK(number(one, "extra_elements") == 2048);
}

TEST_CASE("a vector as long as one side of a matrix is not a flat parameter") {
  Explanation explanation = explained({{4096}, {4096, 11008}, "layers.0.mlp.weight"});
  REQUIRE_FALSE(explanation.hypotheses.empty());
  CHECK(explanation.hypotheses[0].id != "H-F");
}

TEST_CASE("MLX packs 32 / bits values along the last axis") {
  Explanation explanation = explain(
      "ValueError: Expected shape (151936, 320) but received shape (151936, 2560) for parameter "
      "model.embed_tokens.weight");
  CHECK(first(explanation) == "H-Q either");
}

TEST_CASE("a view that does not fit is read as two shapes") {
  Explanation explanation =
      explain("RuntimeError: shape '[128256, 2048]' is invalid for input of size 65667584");
  REQUIRE(explanation.parsed.messages.size() == 1);
  CHECK(explanation.parsed.messages[0].saved == Extents{65667584});
  CHECK(explanation.parsed.messages[0].current == Extents{128256, 2048});
  CHECK(first(explanation) == "H-F checkpoint");
}

TEST_CASE("flat and placeholder readings are turned round with the sides") {
  for (const Extents& odd : std::vector<Extents>{{0}, {1}, {7}, {1024}, {4096, 1}}) {
    CAPTURE(to_text(ExtentsView(odd)));
    Explanation there = explained({odd, {64, 128}, "a.b"}),
                back = explained({{64, 128}, odd, "a.b"});
    CHECK(there.hypotheses.size() == back.hypotheses.size());
    REQUIRE_FALSE(there.hypotheses.empty());
    CHECK(there.hypotheses[0].id == back.hypotheses[0].id);
    CHECK(there.hypotheses[0].confidence == doctest::Approx(back.hypotheses[0].confidence));
  }
}

TEST_CASE("sizes at the ends of 64 bits are read without a sum that overflows") {
  const std::string most = "9223372036854775807", even = "9223372036854775806",
                    block = "9223372036854775552";
  const auto sizes = [](const std::string& a, const std::string& b) {
    return "The size of tensor a (" + a + ") must match the size of tensor b (" + b +
           ") at non-singleton dimension 0";
  };
  const auto shapes = [](const std::string& name, const std::string& a, const std::string& b) {
    return "size mismatch for " + name + ": copying a param with shape torch.Size([" + a +
           "]) from checkpoint, the shape in current model is torch.Size([" + b + "]).";
  };
  const std::string layers = "Missing key(s) in state_dict: \"layers.0.a.weight\", \"layers." +
                             most + ".b.weight\", \"layers.1.c.weight\".";
  for (const std::string& text :
       {sizes(most, "100001"), sizes("100001", most), sizes(most, most), sizes(most, even),
        shapes("a.weight", most, even), shapes("a.weight", "8, " + most, "8, " + even),
        shapes("a.weight", "4611686018427387904", "3"), shapes("pos_embed", most, even),
        shapes("blk.0.attn_q.weight", "2, 34", "2, " + block),
        shapes("layers.0.mlp.up_proj.weight", most + ", 1", even + ", 1"),
        shapes("weight", most + ", 8", "1024, 8"), layers,
        std::string("RuntimeError: shape '[4, 2, 2, 8]' is invalid for input of size 0")}) {
    CAPTURE(text);
    for (const Hypothesis& one : explain(text).hypotheses) CHECK(one.confidence <= 1);
  }
}

TEST_CASE("lengths that overflow are not a flat parameter") {
  const std::int64_t most = 9223372036854775807;
  for (const FlatCase& test : std::vector<FlatCase>{{{most}, {most, most}, "a"},
                                                    {{most, 1}, {most, 2}, "a"},
                                                    {{3}, {most, 1}, "a"},
                                                    {{5}, {0, 4}, "a"},
                                                    {{0, 4}, {5}, "a"}}) {
    Explanation explanation = explained(test);
    for (const Hypothesis& one : explanation.hypotheses) CHECK(one.confidence <= 1);
  }
}
