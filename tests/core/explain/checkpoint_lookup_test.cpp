// The names and shapes of a message, looked up in the checkpoint that it is about.
#include "core/explain/checkpoint_lookup.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "core/explain/support.h"
#include "core/model/builder.h"

using namespace shw;
using namespace shw::test;

namespace {

std::shared_ptr<const Checkpoint> small_model() {
  CheckpointBuilder builder;
  for (const char* fqn : {"model.embed_tokens.weight", "model.layers.0.mlp.up_proj.weight",
                          "model.layers.0.mlp.down_proj.weight"})
    builder.add_tensor(fqn, Dtype::kBfloat16, Extents{64, 32});
  return std::move(builder).finish();
}

CheckpointLookup look_up_text(const std::string& text) {
  return look_up(parse_error_text(text), *small_model());
}

std::string mismatch(const std::string& name, const Extents& saved, const Extents& current) {
  return "size mismatch for " + name + ": copying a param with shape torch.Size(" +
         to_text(ExtentsView(saved)) +
         ") from checkpoint, the shape in current model is torch.Size(" +
         to_text(ExtentsView(current)) + ").";
}

bool says(const NameLookup& one, const std::string& words) {
  return one.text.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("explain: a name of the message is found here, under a prefix, or nowhere") {
  const CheckpointLookup lookup = look_up_text(
      "Missing key(s) in state_dict: \"model.embed_tokens.weight\", "
      "\"layers.0.mlp.up_proj.weight\", "
      "\"base_model.model.layers.0.mlp.down_proj.weight\", \"model.layers.0.mlp.gate.weight\". ");
  REQUIRE(lookup.names.size() == 4);
  CHECK(lookup.here == 1);
  CHECK(lookup.under_other_name == 2);
  CHECK(lookup.nowhere == 1);
  CHECK(says(lookup.names[0], "is here, [64, 32] bfloat16"));
  CHECK(lookup.names[1].stored == "model.layers.0.mlp.up_proj.weight");
  CHECK(says(lookup.names[1], "the checkpoint adds \"model.\""));
  CHECK(says(lookup.names[2], "the checkpoint lacks \"base_model.\""));
  CHECK(says(lookup.names[3], "2 tensors begin with \"model.layers.0.mlp.\""));
  CHECK(lookup.names[3].has_siblings);
}

TEST_CASE("explain: the stored shape tells which side of the message is the file's") {
  const std::string name = "model.layers.0.mlp.up_proj.weight";
  auto verdict = [&](const Extents& saved, const Extents& current) {
    const CheckpointLookup lookup = look_up_text(mismatch(name, saved, current));
    REQUIRE(lookup.names.size() == 1);
    return lookup.names[0];
  };
  CHECK(says(verdict({64, 32}, {128, 32}), "equals the saved shape in the message"));
  CHECK(says(verdict({128, 32}, {64, 32}),
             "the model expects: the message is about a different file"));
  CHECK(says(verdict({128, 32}, {256, 32}), "neither shape in the message"));
}

TEST_CASE("explain: a single part or a path is not looked up as a tensor") {
  CHECK(look_up_text("KeyError: 'weight'").names.empty());
  CHECK(look_up_text("No safetensors found in /m/model.layers.0").names.empty());
}

TEST_CASE(
    "explain: a loaded adapter's name is found as its file has it, a file name is not looked up") {
  CheckpointBuilder builder;
  builder.add_tensor("base_model.model.layers.0.q_proj.lora_A.weight", Dtype::kFloat32,
                     Extents{4, 32});
  const auto adapter = std::move(builder).finish();
  const CheckpointLookup lookup =
      look_up(parse_error_text(mismatch("base_model.model.layers.0.q_proj.lora_A.default.weight",
                                        {4, 32}, {8, 32})),
              *adapter);
  REQUIRE(lookup.names.size() == 1);
  CHECK(lookup.here == 1);
  CHECK(says(lookup.names[0], "equals the saved shape in the message"));
  CHECK(look_up_text("Missing key(s) in state_dict: \"model.safetensors\". ").names.empty());
}

TEST_CASE("explain: commands name the checkpoint that was given, quoted for a shell") {
  Explanation explanation = explain(mismatch("a.b.weight", {64, 32}, {96, 32}));
  REQUIRE_FALSE(explanation.hypotheses.empty());
  substitute_checkpoint_path(explanation, "my run/step_9");
  for (const Hypothesis& one : explanation.hypotheses) {
    CHECK(one.command.find("CHECKPOINT") == std::string::npos);
    CHECK(one.command.find("'my run/step_9'") != std::string::npos);
  }
}

TEST_CASE("explain: what the lookup decides comes before what the words suggest") {
  auto first_with = [](const std::string& names) {
    Explanation explanation = explain("Missing key(s) in state_dict: " + names + ". ");
    add_lookup_result(look_up(explanation.parsed, *small_model()), explanation);
    double sum = explanation.none_of_these;
    for (const Hypothesis& one : explanation.hypotheses) sum += one.confidence;
    CHECK(sum == doctest::Approx(1));
    return explanation.hypotheses.front();
  };
  CHECK(first_with("\"embed_tokens.weight\", \"layers.0.mlp.up_proj.weight\"").title ==
        "all names are in the checkpoint, behind the prefix \"model.\"");
  CHECK(first_with("\"base_model.model.embed_tokens.weight\"").title ==
        "all names are in the checkpoint, without the prefix \"base_model.\"");
  CHECK(first_with("\"model.embed_tokens.weight\"").id == "other-file");
  CHECK(first_with("\"model.layers.0.mlp.gate_proj.weight\"").id == "not-saved");
  // One of them is nowhere: the words decide.
  CHECK(first_with("\"model.embed_tokens.weight\", \"model.norm.weight\"").id != "other-file");
}

TEST_CASE("explain: weights that the checkpoint has in one tensor are not called unsaved") {
  CheckpointBuilder builder;
  for (const char* fqn : {"model.layers.0.self_attn.qkv_proj.weight",
                          "model.layers.0.self_attn.o_proj.weight", "model.norm.weight"})
    builder.add_tensor(fqn, Dtype::kBfloat16, Extents{64, 32});
  const auto checkpoint = std::move(builder).finish();
  const auto has_siblings = [&](const std::string& name) {
    const auto text = parse_error_text("Missing key(s) in state_dict: \"" + name + "\". ");
    return look_up(text, *checkpoint).names.front().has_siblings;
  };
  CHECK_FALSE(has_siblings("model.layers.0.self_attn.q_proj.weight"));
  CHECK_FALSE(has_siblings("model.vision_tower.encoder.layers.3.mlp.fc1.weight"));
}
