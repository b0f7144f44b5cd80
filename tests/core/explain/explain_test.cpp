// From the text of an error to its possible causes.
#include "core/explain/explain.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/explain/hypotheses.h"
#include "core/explain/support.h"
#include "core/rules/check.h"

using namespace shw;
using namespace shw::test;

namespace {

using Readings = std::set<std::string>;  // "H-L both"

Readings readings(const Explanation& explanation) {
  Readings all;
  for (const Hypothesis& one : explanation.hypotheses)
    all.insert(one.id + " " + std::string(name(one.wrong)));
  return all;
}

const EvidenceValue* evidence(const Explanation& explanation, const std::string& reading,
                              std::string_view key) {
  for (const Hypothesis& one : explanation.hypotheses) {
    if (one.id + " " + std::string(name(one.wrong)) != reading) continue;
    for (const auto& [found, value] : one.evidence) {
      if (found == key) return &value;
    }
  }
  return nullptr;
}

std::optional<WorldSizes> worlds_of(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return *parse_world_sizes(text);
}

struct Asked {
  std::string what;
  Extents saved, current;
  std::string fqn;
  std::string world;
  std::string first;
};
const std::vector<Asked> kAsked = {
    {"F1.7 the loader asks for moved placements",
     {288, 4096, 1280},
     {288, 8192, 640},
     "model.layers.3.moe.down_proj.weight",
     "",
     "H-A request"},
    {"F1.7 without a name", {288, 4096, 1280}, {288, 8192, 640}, "", "", "H-A request"},
    {"F1.7 tiny", {2, 3, 4}, {2, 6, 2}, "model.layers.0.moe.down_proj.weight", "", "H-A request"},
    {"F1.1 the checkpoint was saved so",
     {2, 6, 2},
     {2, 3, 4},
     "model.layers.0.moe.down_proj.weight",
     "",
     "H-A checkpoint"},
    {"F1.1 with worlds",
     {288, 8192, 640},
     {288, 4096, 1280},
     "model.layers.3.moe.down_proj.weight",
     "128:64",
     "H-A checkpoint"},
    {"F1.1 at S=4",
     {288, 16384, 320},
     {288, 4096, 1280},
     "model.layers.3.moe.down_proj.weight",
     "",
     "H-A checkpoint"},
    {"F2.1 halves",
     {2, 2},
     {4, 2},
     "optimizer.state.module.module.module.layers.0.mlp.linear_fc1.weight_w.exp_avg",
     "",
     "H-W checkpoint"},
    {"F2.3 a quarter",
     {1, 2},
     {4, 2},
     "optimizer.state.module.x.linear_fc1.weight_v.exp_avg_sq",
     "",
     "H-W checkpoint"},
    {"F2.7 the loader asks for halves of halves",
     {4, 2},
     {2, 2},
     "optimizer.state.module.module.module.layers.0.mlp.linear_fc1.weight_w.exp_avg",
     "",
     "H-W request"},
    {"F2.9 the odd ratio six",
     {2, 2},
     {12, 2},
     "optimizer.state.module.linear_fc1.weight3_w.exp_avg",
     "",
     "H-W checkpoint"},
    {"F3.4 both local", {64}, {128}, "optimizer.state.0.exp_avg", "4:2", "H-L both"},
    {"F3.1 the loader is fixed", {64}, {256}, "optimizer.state.0.exp_avg", "4:8", "H-L checkpoint"},
    {"the loader alone is local", {256}, {64}, "optimizer.state.0.exp_avg", "1:4", "H-L request"},
    {"F3.3 uneven: the last of chunk(10,4)",
     {1},
     {10},
     "optimizer.state.2.exp_avg",
     "4:4",
     "H-L checkpoint"},
    {"F3.7 the survivor is empty",
     {0, 12},
     {2, 12},
     "optimizer.state.4.master_param",
     "4:4",
     "H-L checkpoint"},
    {"F3.7 without worlds",
     {0, 12},
     {2, 12},
     "optimizer.state.4.master_param",
     "",
     "H-L checkpoint"},
    {"F4.1 the expert axis",
     {2, 1},
     {4, 1},
     "model.layers.3.mlp.experts.fc1.weight0",
     "",
     "H-E checkpoint"},
    {"F4 inverse: the loader is old",
     {256, 64},
     {128, 64},
     "model_pp0.layers.3.mlp.experts.fc1.weight0",
     "8:8",
     "H-E request"},
    {"F5.4 E1", {4, 16}, {8, 16}, "layers.1.attention.qkv.weight", "", "H-TP checkpoint"},
    {"F5.4 E1 row-parallel",
     {16, 4},
     {16, 8},
     "layers.1.attention.proj.weight",
     "4:4",
     "H-TP checkpoint"},
    {"the loader lacks its tensor-parallel mesh",
     {8, 16},
     {4, 16},
     "layers.1.fc.weight",
     "",
     "H-TP request"},
    {"0.7.12 the model's own halves",
     {8, 4},
     {16, 4},
     "model.module.layers.0.mlp.fc1.weight_w",
     "",
     "H-TP checkpoint"},
    {"vocabulary multiplied twice",
     {151936, 1024},
     {303872, 1024},
     "model.embed_tokens.weight",
     "3:8",
     "H-TP request"},
    {"vocabulary padded",
     {50257, 768},
     {50304, 768},
     "embedding.word_embeddings.weight",
     "",
     "H-V either"},
    {"vocabulary padded for two tensor-parallel sizes",
     {32128, 64},
     {32256, 64},
     "output_layer.weight",
     "",
     "H-V either"},
    {"a token was added",
     {32000, 4096},
     {32001, 4096},
     "model.embed_tokens.weight",
     "",
     "H-V either"},
    {"Megatron-LM #4129",
     {6561, 1024},
     {5533, 1024},
     "optimizer.state.exp_avg.embedding.word_embeddings.weight",
     "",
     "H-U either"},
    {"transposed", {768, 2304}, {2304, 768}, "h.0.attn.c_attn.weight", "", "H-T either"},
    {"extra state", {2322}, {4}, "decoder.layers.0.self_attention._extra_state", "", "H-X either"},
    {"another model", {1024, 512}, {1280, 640}, "layers.0.fc.weight", "", "H-M either"},
    {"axes that are joined", {8, 16, 4}, {128, 4}, "layers.0.fc.weight", "", "H-FO request"},
    {"another number of dimensions", {8, 16, 4}, {96, 4}, "layers.0.fc.weight", "", "H-M either"},
};

}  // namespace

TEST_CASE("the first hypothesis is the one that the report turned out to be") {
  for (const Asked& test : kAsked) {
    CAPTURE(test.what);
    Explanation explanation =
        explain(sentence(test.saved, test.current, test.fqn), worlds_of(test.world));
    REQUIRE(explanation.parsed.messages.size() == 1);
    CHECK(explanation.parsed.messages[0].saved == test.saved);
    CHECK(explanation.parsed.messages[0].current == test.current);
    CHECK(explanation.parsed.messages[0].name == test.fqn);
    CHECK(first(explanation) == test.first);
    CHECK(explanation.hypotheses[0].rank == 1);
  }
}

TEST_CASE("worlds 4 and 2 make [64] and [128] one rank's shard of 256, and nothing else likely") {
  Explanation explanation =
      explain(sentence({64}, {128}, "optimizer.state.0.exp_avg"), WorldSizes{4, 2});
  const EvidenceValue* dim = evidence(explanation, "H-L both", "parameter_dim");
  REQUIRE(dim != nullptr);
  CHECK(std::get<std::int64_t>(*dim) == 256);
  CHECK(explanation.hypotheses[0].rule == &kLocalSavedAsGlobal);
  CHECK(explanation.hypotheses[0].confidence > 0.9);
  CHECK(explanation.hypotheses[1].confidence < 0.5);
  CHECK(explanation.decide.empty());
}

TEST_CASE("without the worlds a factor of two is a tie, and both worlds are asked for") {
  Explanation explanation = explain(sentence({64}, {128}, "optimizer.state.0.exp_avg"));
  REQUIRE(explanation.hypotheses.size() >= 2);
  CHECK(explanation.hypotheses[0].rank == 1);
  CHECK(explanation.hypotheses[1].rank == 1);
  CHECK(explanation.decide.find("--world") != std::string::npos);
  CHECK(readings(explanation).count("H-L both") == 1);
  CHECK(readings(explanation).count("H-L checkpoint") == 1);
}

TEST_CASE("worlds that the numbers contradict take a hypothesis away") {
  struct Case {
    Extents saved, current;
    std::string fqn;
    std::string world;
    std::string gone;
  };
  const std::vector<Case> cases = {
      {{2, 1}, {4, 1}, "layers.3.mlp.experts.fc1.weight0", "3:3", "H-E checkpoint"},
      {{4, 8}, {8, 8}, "layers.1.qkv.weight", "5:4", "H-TP checkpoint"},
      {{8, 8}, {4, 8}, "layers.1.qkv.weight", "4:5", "H-TP request"},
      {{2, 3, 4}, {2, 6, 2}, "layers.0.moe.down_proj.weight", "2:3", "H-A request"},
      {{64}, {128}, "optimizer.state.0.exp_avg", "2:4", "H-L both"},
      {{64}, {128}, "optimizer.state.0.exp_avg", "1:2", "H-L checkpoint"},
      {{256}, {64}, "optimizer.state.0.exp_avg", "4:1", "H-L request"},
  };
  for (const Case& test : cases) {
    CAPTURE(test.gone);
    std::string text = sentence(test.saved, test.current, test.fqn);
    CHECK(readings(explain(text)).count(test.gone) == 1);
    CHECK(readings(explain(text, worlds_of(test.world))).count(test.gone) == 0);
  }
}

TEST_CASE("a pasted traceback of many ranks gives each message once") {
  std::string text;
  for (int rank = 0; rank < 8; ++rank) {
    std::string prefix = "[rank" + std::to_string(rank) + "]: ";
    text += prefix + "Traceback (most recent call last):\n" + prefix +
            "  File \"/opt/x/planner.py\", line 473, in create_default_local_load_plan\n" + prefix +
            "    raise ValueError(\n" + prefix +
            "ValueError: " + sentence({64}, {128}, "optimizer.state.0.exp_avg") + "\n";
  }
  Explanation explanation = explain(text, WorldSizes{4, 2});
  CHECK(explanation.parsed.messages.size() == 1);
  CHECK(first(explanation) == "H-L both");
}

TEST_CASE("of several messages, what explains all of them comes first") {
  std::string text = sentence({2, 4}, {4, 4}, "layers.0.mlp.experts.fc1.weight0") + "\n" +
                     sentence({4, 2}, {4, 4}, "layers.0.attention.proj.weight") + "\n" +
                     sentence({6, 4}, {12, 4}, "layers.0.attention.qkv.weight");
  Explanation explanation = explain(text);
  CHECK(explanation.parsed.messages.size() == 3);
  CHECK(first(explanation) == "H-TP checkpoint");
  CHECK(std::get<std::int64_t>(*evidence(explanation, "H-TP checkpoint", "messages")) == 3);
}

TEST_CASE("every hypothesis names a rule that exists, says what decides, and what to type") {
  std::vector<std::string> texts = {
      sentence({2, 3, 4}, {2, 6, 2}, "x.moe.y"),
      sentence({8, 4}, {4, 8}, "x"),
      sentence({2, 4}, {4, 4}, "optimizer.state.a.weight_w.exp_avg"),
      sentence({50257, 4}, {50304, 4}, "embed.weight"),
      sentence({3}, {7}, "a._extra_state"),
      sentence({3}, {7}, "experts.w"),
      "Missing key in checkpoint state_dict: a MetadataIndex(fqn='b', ) failed finding central "
      "directory. invalid header or archive is corrupted. No module named 'pathlib._local' too "
      "many values to unpack (expected 5) Failed to validate global plan pickle data was truncated "
      "No such file or directory: 'x/.metadata' Unsupported global: GLOBAL a.b 'Tensor' object has "
      "no attribute 'to_local' Unexpected key(s) in state_dict: \"q\""};
  for (const std::string& text : texts) {
    Explanation explanation = explain(text);
    REQUIRE_FALSE(explanation.hypotheses.empty());
    for (const Hypothesis& one : explanation.hypotheses) {
      CAPTURE(one.id);
      CHECK((one.rule == nullptr || find_rule(one.rule->id) != nullptr));
      CHECK(one.title.size() > 10);
      CHECK(one.text.size() > 40);
      CHECK(one.decide.size() > 15);
      CHECK(one.command.starts_with("shardwright "));
      CHECK(one.command.find("repair") == std::string::npos);
      CHECK(one.confidence > 0);
      CHECK(one.confidence < 1);
    }
  }
}

TEST_CASE("swapping saved and current mirrors every hypothesis") {
  const std::vector<std::string> names = {"",
                                          "layers.0.fc.weight",
                                          "optimizer.state.0.exp_avg",
                                          "optimizer.state.a.weight_w.exp_avg",
                                          "layers.0.mlp.experts.fc1.weight0",
                                          "model.embed_tokens.weight",
                                          "layers.0.norm.weight",
                                          "a._extra_state"};
  const std::vector<std::int64_t> sizes = {0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 50257, 50304};
  auto mirrored = [](const Readings& all) {
    Readings out;
    for (std::string one : all) {
      if (one.ends_with(" checkpoint")) {
        one.replace(one.size() - 10, 10, "request");
      } else if (one.ends_with(" request")) {
        one.replace(one.size() - 7, 7, "checkpoint");
      }
      out.insert(one);
    }
    return out;
  };
  Dice dice;
  std::size_t seen = 0;
  for (int i = 0; i < 20000; ++i) {
    Extents saved, current;
    std::size_t ndim = 1 + dice.below(3);
    for (std::size_t d = 0; d < ndim; ++d) {
      saved.push_back(sizes[dice.below(sizes.size())]);
      current.push_back(dice.below(2) == 0 ? saved.back() : sizes[dice.below(sizes.size())]);
    }
    if (dice.below(8) == 0) std::next_permutation(current.begin(), current.end());
    const std::string& fqn = names[dice.below(names.size())];
    std::optional<WorldSizes> worlds, back;
    if (dice.below(2) == 0) {
      worlds = WorldSizes{static_cast<std::int64_t>(1 + dice.below(8)),
                          static_cast<std::int64_t>(1 + dice.below(8))};
      back = WorldSizes{worlds->load, worlds->save};
    }
    Readings there = readings(explain(sentence(saved, current, fqn), worlds));
    Readings again = readings(explain(sentence(current, saved, fqn), back));
    seen += there.size();
    if (mirrored(there) != again) {
      CAPTURE(sentence(saved, current, fqn));
      CHECK(mirrored(there) == again);
    }
  }
  CHECK(seen > 20000);
}

TEST_CASE("one rank's shard is found for every uneven cut, by a slow reference") {
  for (std::int64_t whole = 1; whole <= 24; ++whole) {
    for (std::int64_t ranks = 1; ranks <= 9; ++ranks) {
      std::set<std::int64_t> parts;
      std::int64_t step = (whole + ranks - 1) / ranks;
      for (std::int64_t r = 0; r < ranks; ++r) {
        std::int64_t begin = std::min(r * step, whole);
        parts.insert(std::min(begin + step, whole) - begin);
      }
      for (std::int64_t part = 0; part < whole; ++part) {
        bool divides = part > 0 && whole % part == 0 && ranks % (whole / part) == 0;
        bool expected = parts.count(part) == 1 || divides;
        auto found = readings(
            explain(sentence({part}, {whole}, "optimizer.state.0.exp_avg"), WorldSizes{ranks, 1}));
        CAPTURE(whole);
        CAPTURE(ranks);
        CAPTURE(part);
        CHECK((found.count("H-L checkpoint") == 1) == expected);
      }
    }
  }
}
