// config.json against itself, and against parts, heads and experts of the weights.
#include "core/rules/names/named_tensors.h"
#include "core/rules/reference/config_folder.h"

using namespace shw;

namespace {

std::string said_by_config(const ConfigWeights& weights, const Keys& keys) {
  const CheckReport report = beside_keys(weights, keys);
  return test::all_causes(report, "config-announces");
}

}  // namespace

TEST_CASE("config: a list of layer types has an entry for each layer") {
  CHECK(said_by_config(llama_weights(), {{"layer_types", R"(["a", "a", "a"])"}}).empty());
  const std::string cause =
      said_by_config(llama_weights(), {{"layer_types", R"(["a", "a", "a", "a"])"}});
  CHECK(names_all(cause, {"layer_types has 4 entries", "num_hidden_layers is 3"}));
  // Code of its own may mean something else by it.
  CHECK(said_by_config(llama_weights(),
                       {{"layer_types", R"(["a"])"}, {"auto_map", R"({"AutoConfig": "a.B"})"}})
            .empty());
}

TEST_CASE("config: a head of fewer rows cannot be tied to the embedding") {
  ConfigWeights weights = llama_weights();
  weights.shapes["lm_head.weight"] = {4, 8};
  const Keys draft = {{"architectures", "[\"LlamaForCausalLMEagle3\"]"}, {"vocab_size", ""}};
  Keys tied = draft;
  tied["tie_word_embeddings"] = "true";
  CHECK(said_by_config(weights, draft).empty());
  CHECK(
      names_all(said_by_config(weights, tied), {"tie_word_embeddings true", "[4, 8]", "[12, 8]"}));
}

TEST_CASE("config: a part that all names should begin with is missing from them") {
  const Keys whole = {{"model_type", "\"qwen3_omni_moe\""},
                      {"architectures", "[\"Qwen3OmniMoeForConditionalGeneration\"]"},
                      {"thinker_config", R"({"text_config": {"hidden_size": 8}})"}};
  CHECK(names_all(said_by_config(llama_weights(), whole), {"thinker_config"}));
  ConfigWeights named;
  for (const auto& [name, shape] : llama_weights().shapes) named.shapes["thinker." + name] = shape;
  CHECK(said_by_config(named, whole).empty());
}

TEST_CASE("config names: weights of another class in each layer are a warning") {
  ConfigWeights weights = llama_weights();
  auto add = [&](int layer) {
    weights.shapes[fmt::format("model.layers.{}.self_attn.q_norm.weight", layer)] = {2};
  };
  add(0);
  add(1);
  // One in some layers may be anything.
  CHECK(test::find(beside_keys(weights, {}), "config-names") == nullptr);
  add(2);
  const Finding finding = only_one(beside_keys(weights, {}), "config-names", Severity::kWarning);
  CHECK(finding.subjects.size() == 3);
  CHECK(names_all(finding.cause, {"LlamaForCausalLM", "q_norm", "another class"}));
}

TEST_CASE("router rows: blocks without one expert are reported by config.json's count") {
  ConfigWeights weights = llama_weights();
  for (int layer = 0; layer < 3; ++layer) {
    weights.shapes[fmt::format("model.layers.{}.mlp.router.weight", layer)] = {4, 8};
    for (const char* part : {"gate_proj", "up_proj", "down_proj"})
      weights.shapes.erase(fmt::format("model.layers.{}.mlp.{}.weight", layer, part));
  }
  const Keys keys = {{"model_type", "\"tiny_moe\""},
                     {"architectures", "[\"TinyMoeForCausalLM\"]"},
                     {"num_local_experts", "4"}};
  const std::string cause = test::all_causes(beside_keys(weights, keys), "router-rows");
  CHECK(names_all(cause, {"3 routers score 4 experts", "not one tensor of an expert"}));
  // Rank files of a serving engine hold a whole model too.
  Keys all = llama_keys();
  for (const auto& [key, value] : keys) all[key] = value;
  const CheckReport ranks = checked_folder({{"config.json", bytes_of_text(config_text(all))},
                                            {"model-rank-0-part-0.safetensors", weights.file()},
                                            {"model-rank-1-part-0.safetensors", weights.file()}});
  CHECK(names_all(test::all_causes(ranks, "router-rows"), {"not one tensor of an expert"}));
  Keys other = keys;
  other["num_local_experts"] = "8";
  CHECK(test::all_causes(beside_keys(weights, other), "router-rows").empty());
  // Some models put the router a level deeper than the experts.
  ConfigWeights deeper = weights;
  for (int layer = 0; layer < 3; ++layer) {
    const std::string block = fmt::format("model.layers.{}.mlp.", layer);
    deeper.shapes.erase(block + "router.weight");
    deeper.shapes[block + "router.gate.weight"] = {4, 8};
    for (int expert = 0; expert < 4; ++expert)
      deeper.shapes[fmt::format("{}experts.{}.up_proj.weight", block, expert)] = {10, 8};
  }
  CHECK(test::all_causes(beside_keys(deeper, keys), "router-rows").empty());
  // Others name their experts otherwise.
  weights.shapes["model.layers.0.mlp.input_linear.weight"] = {4, 10, 8};
  CHECK(test::all_causes(beside_keys(weights, keys), "router-rows").empty());
}

TEST_CASE("config count: an untied head is missing, and a quantised one is not") {
  ConfigWeights without = llama_weights();
  without.shapes.erase("lm_head.weight");
  const Keys untied = {{"tie_word_embeddings", "false"},
                       {"architectures", "[\"LlamaForCausalLM\"]"}};
  only_one(beside_keys(without, untied), "config-count", Severity::kWarning);
  ConfigWeights quantised = without;
  quantised.shapes["lm_head.weight.qdata"] = {12, 8};
  for (const Finding* finding : finding_of_side_file(beside_keys(quantised, untied)))
    CHECK(finding->rule != "config-count");
}

TEST_CASE("config announces: torchao's weights without quantization_config are a warning") {
  ConfigWeights torchao = llama_weights();
  torchao.shapes.erase("model.layers.0.mlp.up_proj.weight");
  torchao.shapes["model.layers.0.mlp.up_proj._weight_qdata"] = {10, 8};
  torchao.shapes["model.layers.0.mlp.up_proj._weight_scale"] = {10, 1};
  CHECK(names_all(said_by_config(torchao, {}), {"_weight_qdata", "no quantization_config"}));
}

TEST_CASE("config announces: stacked FP4 experts without quantization_config are a warning") {
  test::NamedTensors stacked = test::llama_tensors(test::same_name);
  auto announced = [&] {
    const CheckReport report =
        test::checked_tensors(stacked, {{"config.json", test::kLlamaConfig}});
    return test::all_causes(report, "config-announces");
  };
  stacked["model.layers.0.mlp.experts.up_proj_blocks"] = {"U8", {2, 4, 1, 16}};
  CHECK(announced().find("_blocks") == std::string::npos);
  stacked["model.layers.0.mlp.experts.up_proj_scales"] = {"U8", {2, 4, 1}};
  CHECK(names_all(announced(), {"_blocks", "no quantization_config"}));
}

TEST_CASE("config: further prediction layers in a file that the index does not list are reported") {
  const std::string part = "model-00001-of-00001.safetensors";
  auto announced = [&](const std::string& layer, const char* beside) {
    std::string index;
    for (const auto& [name, shape] : llama_weights().shapes)
      index += fmt::format(R"({}"{}": "{}")", index.empty() ? "" : ", ", name, part);
    Keys keys = llama_keys();
    keys["num_nextn_predict_layers"] = "1";
    ConfigWeights more;
    more.shapes[layer] = {8, 8};
    const auto opened = open_checkpoint(memory_directory(
        "hf", {{"config.json", bytes_of_text(config_text(keys))},
               {part, llama_weights().file()},
               {"model.safetensors.index.json",
                bytes_of_text(R"({"metadata": {}, "weight_map": {)" + index + "}}")},
               {beside, more.file()}}));
    REQUIRE(opened.has_value());
    const auto report = check(**opened, CheckOptions());
    REQUIRE(report.has_value());
    return test::all_causes(*report, "config-announces");
  };
  const char* beside = "model-mtp-of-00005.safetensors";
  CHECK(names_all(announced("mtp.fc.weight", beside), {beside, "1 tensor", "weight_map"}));
  // A file of other tensors does not have them.
  CHECK(names_all(announced("other.weight", beside), {"0 multi-token prediction"}));
}
