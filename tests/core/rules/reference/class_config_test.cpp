// config.json next to the weights of classes whose keys are in the table of
// assets/config_sizes.json.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "core/facts/names/class_sizes.h"
#include "core/rules/reference/config_folder.h"

using namespace shw;

namespace {

// An OLMoE of three layers with four experts of width 10 in each.
ConfigWeights olmoe_weights() {
  ConfigWeights out = llama_weights();
  std::erase_if(out.shapes,
                [](const auto& one) { return one.first.find(".mlp.") != std::string::npos; });
  for (int layer = 0; layer < 3; ++layer) {
    const std::string mlp = fmt::format("model.layers.{}.mlp.", layer);
    out.shapes[mlp + "gate.weight"] = {4, 8};
    out.shapes[fmt::format("model.layers.{}.self_attn.q_norm.weight", layer)] = {8};
    out.shapes[fmt::format("model.layers.{}.self_attn.k_norm.weight", layer)] = {4};
    for (int expert = 0; expert < 4; ++expert) {
      const std::string one = fmt::format("{}experts.{}.", mlp, expert);
      out.shapes[one + "gate_proj.weight"] = {10, 8};
      out.shapes[one + "up_proj.weight"] = {10, 8};
      out.shapes[one + "down_proj.weight"] = {8, 10};
    }
  }
  return out;
}

Keys olmoe_keys() {
  return {{"model_type", "\"olmoe\""},
          {"architectures", "[\"OlmoeForCausalLM\"]"},
          {"num_experts", "4"},
          {"moe_intermediate_size", "99"}};
}

// A BART with an encoder of two layers and a decoder of one.
ConfigWeights bart_weights() {
  ConfigWeights out;
  out.shapes["model.shared.weight"] = {12, 8};
  for (const std::string layer :
       {"model.encoder.layers.0.", "model.encoder.layers.1.", "model.decoder.layers.0."}) {
    for (const char* name : {"q_proj", "k_proj", "v_proj", "out_proj"})
      out.shapes[fmt::format("{}self_attn.{}.weight", layer, name)] = {8, 8};
    out.shapes[layer + "fc1.weight"] = {10, 8};
    out.shapes[layer + "fc2.weight"] = {8, 10};
  }
  return out;
}

CheckReport beside_bart(const char* key, const char* value) {
  Keys keys = {{"model_type", "\"bart\""}, {"architectures", "[\"BartForConditionalGeneration\"]"},
               {"vocab_size", "12"},       {"d_model", "8"},
               {"encoder_layers", "2"},    {"decoder_layers", "1"},
               {"encoder_ffn_dim", "10"},  {"decoder_ffn_dim", "10"}};
  if (*key != '\0') keys[key] = value;
  return beside_config(bart_weights(), config_text(keys));
}

bool says(const CheckReport& report, const char* rule, const std::string& words) {
  return std::any_of(report.findings.begin(), report.findings.end(), [&](const Finding& one) {
    return one.rule == rule && one.severity != Severity::kInfo &&
           one.cause.find(words) != std::string::npos;
  });
}

std::string rows_of(const char* class_name, const std::string& name) {
  const auto table = sizes_of_class(class_name);
  REQUIRE(table);
  const auto found = std::find_if(table->sizes.begin(), table->sizes.end(),
                                  [&](const SizesOfName& one) { return one.name == name; });
  return found == table->sizes.end() ? "" : found->extents[0];
}

}  // namespace

TEST_CASE("class sizes: a class has the keys that it reads") {
  CHECK(rows_of("OlmoeForCausalLM", "model.layers.*.mlp.experts.*.up_proj.weight") ==
        "intermediate_size");
  CHECK(rows_of("CLIPModel", "vision_model.embeddings.position_embedding.weight").empty());
  const auto bart = sizes_of_class("BartForConditionalGeneration");
  REQUIRE(bart);
  CHECK(std::any_of(bart->counts.begin(), bart->counts.end(), [](const CountOfList& one) {
    return one.list == "model.decoder.layers." && one.key == "decoder_layers";
  }));
  CHECK_FALSE(sizes_of_class("NoSuchModel"));
  CHECK_FALSE(sizes_of_class("rows\":["));
}

TEST_CASE("config: a key that the class does not read constrains nothing") {
  CheckReport sound = beside_keys(olmoe_weights(), olmoe_keys());
  CHECK_FALSE(says(sound, "config-shape", ""));
  CHECK_FALSE(says(sound, "config-count", ""));
  // Of a class without a table it is checked like the key of any model with experts.
  Keys unknown = olmoe_keys();
  unknown["model_type"] = "\"tiny_moe\"";
  unknown["architectures"] = "[\"TinyMoeForCausalLM\"]";
  CHECK(says(beside_keys(olmoe_weights(), unknown), "config-shape", "moe_intermediate_size 99"));
}

TEST_CASE("config: sizes and numbers of a class of the table are compared") {
  const auto with = [](const char* key, const char* value) {
    Keys keys = olmoe_keys();
    keys[key] = value;
    return beside_keys(olmoe_weights(), keys);
  };
  CHECK(says(with("intermediate_size", "20"), "config-shape", "intermediate_size 20"));
  CHECK(says(with("num_experts", "8"), "config-shape", "num_experts 8"));
  CHECK(says(with("num_experts", "8"), "config-count", "num_experts 8"));
  CHECK(says(with("num_hidden_layers", "4"), "config-count", "num_hidden_layers 4"));
  CHECK_FALSE(says(beside_bart("", ""), "config-shape", ""));
  CHECK_FALSE(says(beside_bart("", ""), "config-count", ""));
  CHECK(says(beside_bart("encoder_layers", "3"), "config-count", "encoder_layers 3"));
  CHECK(says(beside_bart("decoder_layers", "2"), "config-count", "decoder_layers 2"));
  CHECK(says(beside_bart("d_model", "16"), "config-shape", "d_model 16"));
  CHECK_FALSE(says(beside_bart("max_position_embeddings", "99"), "config-shape", ""));
}

TEST_CASE("config: a size that some tensors of a class of the table have is not a contradiction") {
  ConfigWeights mixed = olmoe_weights();
  mixed.shapes["model.layers.1.mlp.experts.2.up_proj.weight"] = {20, 8};
  CHECK_FALSE(says(beside_keys(mixed, olmoe_keys()), "config-shape", ""));
}

TEST_CASE("config: experts that the class stores with another width are not transposed") {
  ConfigWeights weights;
  weights.shapes = {{"layers.0.input_layernorm.weight", {8}},
                    {"layers.0.mlp.gate.weight", {4, 8}},
                    {"layers.0.mlp.experts.gate_up_proj", {4, 8, 6}},
                    {"layers.0.mlp.experts.down_proj", {4, 6, 4}}};
  const Keys keys = {{"model_type", "\"muse_spark_text\""},
                     {"architectures", "[\"MuseSparkTextModel\"]"},
                     {"hidden_size", "8"},
                     {"moe_hidden_size", "6"},
                     {"moe_intermediate_size", "4"},
                     {"num_local_experts", "4"}};
  CHECK_FALSE(says(beside_keys(weights, keys), "config-shape", "swapped"));
  Keys other = keys;
  other["architectures"] = "[\"NoSuchModel\"]";
  other["model_type"] = "\"no_such\"";
  CHECK(says(beside_keys(weights, other), "config-shape", "swapped"));
}
