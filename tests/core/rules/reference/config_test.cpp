// The config.json of a Hugging Face folder next to its weights: contradictions are reported with
// the key and both numbers, and nothing is reported if a key may mean something else.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "core/facts/reference/config_constraints.h"
#include "core/rules/on_fixtures.h"
#include "core/rules/reference/config_folder.h"

using namespace shw;
using namespace shw::test;

TEST_CASE("weights that are as config.json says are clean, and so are those without one") {
  CheckReport sound = beside_keys(llama_weights(), {});
  CHECK(sound.verdict == Verdict::kClean);
  CHECK(finding_of_side_file(sound).empty());
  CHECK_FALSE(is_config_open(sound, ""));
  CheckReport without = checked_folder({{"model.safetensors", llama_weights().file()}});
  CHECK(finding_of_side_file(without).empty());
}

TEST_CASE("a size of config.json that no weight has is an error with the key and both numbers") {
  CheckReport hidden = beside_keys(llama_weights(), {{"hidden_size", "16"}});
  const Finding& finding = only_one(hidden, "config-shape", Severity::kError);
  CHECK(names_all(finding.cause, {"hidden_size 16", "[12, 8]", "8 columns"}));
  CHECK(finding.consequence == Consequence::kWillNotLoad);
  CHECK(finding.subjects.size() == 30);  // every weight has it along one axis
  CheckReport ffn = beside_keys(llama_weights(), {{"intermediate_size", "11"}});
  CHECK(names_all(only_one(ffn, "config-shape", Severity::kError).cause,
                  {"intermediate_size 11", "mlp.down_proj.weight [8, 10] has 10 columns"}));
  CheckReport keys = beside_keys(llama_weights(), {{"num_key_value_heads", "4"}});
  CHECK(names_all(only_one(keys, "config-shape", Severity::kError).cause,
                  {"num_key_value_heads 4 x (hidden_size 8 / num_attention_heads 4) = 8",
                   "k_proj.weight [4, 8] has 4 rows"}));
  CheckReport dim = beside_keys(llama_weights(), {{"head_dim", "3"}});
  CHECK(names_all(
      only_one(dim, "config-shape", Severity::kError).cause,
      {"num_attention_heads 4 x head_dim 3 = 12", "self_attn.o_proj.weight [8, 8] has 8 columns"}));
}

TEST_CASE("the config of another model is one finding that names what differs") {
  ConfigWeights weights = llama_weights();
  CheckReport report = beside_keys(
      weights, {{"hidden_size", "16"}, {"intermediate_size", "44"}, {"num_hidden_layers", "2"}});
  auto told = finding_of_side_file(report);
  REQUIRE(told.size() == 2);
  CHECK(names_all(told[0]->cause, {"hidden_size 16", "intermediate_size 44", "another model"}));
  CHECK(told[1]->rule == "config-count");
}

TEST_CASE("one tensor of another size than all others is the one that is named") {
  ConfigWeights weights = llama_weights();
  weights.shapes["model.layers.1.input_layernorm.weight"] = {1};
  CheckReport report = beside_keys(weights, {});
  const Finding& finding = only_one(report, "config-shape", Severity::kError);
  CHECK(finding.subjects == std::vector<std::string>{"model.layers.1.input_layernorm.weight"});
  CHECK(names_all(finding.cause, {"hidden_size 8", "1 elements", "1 of"}));
}

TEST_CASE("more rows than vocab_size may be padding and fewer are an error") {
  CheckReport more = beside_keys(llama_weights(), {{"vocab_size", "11"}});
  CHECK(names_all(only_one(more, "config-shape", Severity::kWarning).cause,
                  {"vocab_size 11", "has 12 rows", "padding"}));
  CheckReport fewer = beside_keys(llama_weights(), {{"vocab_size", "13"}});
  only_one(fewer, "config-shape", Severity::kError);
  // A head that kept its size when the embedding grew.
  ConfigWeights weights = llama_weights();
  weights.shapes["model.embed_tokens.weight"] = {16, 8};
  weights.shapes["lm_head.weight"] = {11, 8};
  only_one(beside_keys(weights, {}), "config-shape", Severity::kError);
}

TEST_CASE(
    "layers that config.json counts and that are not there are named, and a gap is an error") {
  CheckReport last = beside_keys(llama_weights(), {{"num_hidden_layers", "5"}});
  const Finding& finding = only_one(last, "config-count", Severity::kWarning);
  CHECK(finding.subjects == std::vector<std::string>{"model.layers.3", "model.layers.4"});
  CHECK(names_all(finding.cause, {"num_hidden_layers 5", "there are 3", "3 to 4 are not there"}));
  ConfigWeights holed = llama_weights(5);
  std::erase_if(holed.shapes,
                [](const auto& one) { return one.first.starts_with("model.layers.2"); });
  CheckReport gap = beside_keys(holed, {{"num_hidden_layers", "5"}});
  CHECK(names_all(only_one(gap, "config-count", Severity::kError).cause, {"2 is not there"}));
}

TEST_CASE("layers beyond the count are a warning, but not those that predict further tokens") {
  ConfigWeights weights = llama_weights(4);
  CHECK(names_all(only_one(beside_keys(weights, {}), "config-count", Severity::kWarning).cause,
                  {"num_hidden_layers 3", "there are 4", "3 is beyond"}));
  CHECK(finding_of_side_file(beside_keys(weights, {{"num_nextn_predict_layers", "1"}})).empty());
  weights.shapes["model.layers.3.eh_proj.weight"] = {8, 16};
  CHECK(finding_of_side_file(beside_keys(weights, {})).empty());
}

void add_expert(ConfigWeights& weights, int layer, int expert) {
  const std::string name = fmt::format("model.layers.{}.mlp.experts.{}.", layer, expert);
  weights.shapes[name + "gate_proj.weight"] = {6, 8};
  weights.shapes[name + "up_proj.weight"] = {6, 8};
  weights.shapes[name + "down_proj.weight"] = {8, 6};
}

TEST_CASE("experts are counted in the layers that have any") {
  ConfigWeights weights = llama_weights();
  for (int layer = 1; layer < 3; ++layer) {
    for (int expert = 0; expert < (layer == 2 ? 3 : 4); ++expert)
      add_expert(weights, layer, expert);
    const std::string mlp = fmt::format("model.layers.{}.mlp.", layer);
    weights.shapes[mlp + "gate.weight"] = {4, 8};
    weights.shapes[mlp + "shared_expert_gate.weight"] = {1, 8};
    for (const char* projection : {"gate_proj", "up_proj", "down_proj"}) {
      weights.shapes.erase(mlp + projection + ".weight");
      weights.shapes[mlp + "shared_expert." + projection + ".weight"] = {8, 8};
    }
  }
  for (int layer = 0; layer < 3; ++layer) {
    const std::string attention = fmt::format("model.layers.{}.self_attn.", layer);
    weights.shapes[attention + "q_proj.bias"] = {8};
    weights.shapes[attention + "k_proj.bias"] = {4};
    weights.shapes[attention + "v_proj.bias"] = {4};
  }
  Keys keys = {{"model_type", "\"qwen2_moe\""},
               {"architectures", "[\"Qwen2MoeForCausalLM\"]"},
               {"num_experts", "4"},
               {"moe_intermediate_size", "6"}};
  CheckReport report = beside_keys(weights, keys);
  const Finding& finding = only_one(report, "config-count", Severity::kWarning);
  CHECK(finding.subjects == std::vector<std::string>{"model.layers.2.mlp.experts.3"});
  add_expert(weights, 2, 3);
  CHECK(finding_of_side_file(beside_keys(weights, keys)).empty());
  // Two keys for the same number that differ: it is unknown which one counts.
  keys["n_routed_experts"] = "8";
  CHECK(finding_of_side_file(beside_keys(weights, keys)).empty());
}

TEST_CASE("the router of an architecture without a table has a row for each expert") {
  ConfigWeights weights = llama_weights();
  for (int layer = 0; layer < 3; ++layer)
    weights.shapes[fmt::format("model.layers.{}.mlp.router.weight", layer)] = {4, 8};
  Keys keys = {{"model_type", "\"tiny_moe\""},
               {"architectures", "[\"TinyMoeForCausalLM\"]"},
               {"num_local_experts", "4"}};
  CHECK(rules_above_info(beside_keys(weights, keys)).empty());
  keys["num_local_experts"] = "8";
  CHECK(rules_above_info(beside_keys(weights, keys)) == std::vector<std::string>{"config-shape"});
}

TEST_CASE("a head that is not tied and not there is reported, and one that may be is not") {
  ConfigWeights weights = llama_weights();
  weights.shapes.erase("lm_head.weight");
  const Finding finding = only_one(beside_keys(weights, {}), "config-count", Severity::kWarning);
  CHECK(finding.subjects == std::vector<std::string>{"lm_head.weight"});
  CHECK(names_all(finding.cause, {"tie_word_embeddings false"}));
  CHECK(finding_of_side_file(beside_keys(weights, {{"tie_word_embeddings", "true"}})).empty());
  CHECK(finding_of_side_file(beside_keys(weights, {{"tie_word_embeddings", ""}})).empty());
  ConfigWeights classifier = weights;
  classifier.shapes["score.weight"] = {2, 8};
  CHECK(finding_of_side_file(
            beside_keys(classifier, {{"architectures", "[\"LlamaForSequenceClassification\"]"}}))
            .empty());
  // Only the inner model: a text embedder keeps the class name of the model it was made from.
  ConfigWeights inner;
  for (const auto& [name, shape] : weights.shapes) inner.shapes[name.substr(6)] = shape;
  CHECK(finding_of_side_file(beside_keys(inner, {})).empty());
}

TEST_CASE("another dtype than all weights have is only to know") {
  only_one(beside_keys(llama_weights(), {{"torch_dtype", "\"bfloat16\""}}), "config-shape",
           Severity::kInfo);
  ConfigWeights half = llama_weights();
  half.dtype = "F16";
  CHECK(finding_of_side_file(beside_keys(half, {{"torch_dtype", "\"float16\""}})).empty());
}

TEST_CASE("nothing is said of packed weights, unknown models, adapters and parts of a folder") {
  Keys wrong = {{"hidden_size", "16"}, {"num_hidden_layers", "9"}};
  auto with = [&](const char* key, const char* value) {
    Keys keys = wrong;
    keys[key] = value;
    return keys;
  };
  // Layers are recognised in any quantised form.
  ConfigWeights quantised = llama_weights();
  quantised.shapes["model.layers.0.mlp.up_proj.qweight"] = {1, 8};
  CheckReport packed =
      beside_keys(quantised, with("quantization_config", "{\"quant_method\": \"gptq\"}"));
  only_one(packed, "config-count", Severity::kWarning);
  CheckReport unknown = beside_keys(llama_weights(), with("model_type", "\"llama-of-mine\""));
  CHECK(finding_of_side_file(unknown).empty());
  CHECK(is_config_open(unknown, "llama-of-mine"));
  CHECK(finding_of_side_file(beside_keys(llama_weights(), with("model_type", ""))).empty());
  // Draft models of speculative decoding are llamas by their model_type, but with other sizes.
  for (const char* of_others : {"[\"LlamaForCausalLMEagle3\"]", "[\"MyForCausalLM\"]"}) {
    CheckReport draft = beside_keys(llama_weights(), with("architectures", of_others));
    CHECK(finding_of_side_file(draft).empty());
    CHECK(is_config_open(draft, "llama"));
  }
  ConfigWeights wrapped;
  for (const auto& [name, shape] : llama_weights().shapes) wrapped.shapes["module." + name] = shape;
  CheckReport other_names = beside_keys(wrapped, wrong);
  // Under other class names it is checked like any architecture.
  CHECK_FALSE(finding_of_side_file(other_names).empty());
  CHECK(finding_of_side_file(other_names, Severity::kError).empty());
  CHECK(is_config_open(other_names, "llama"));
  const Bytes config = bytes_of_text(config_text(llama_keys()));
  const Bytes lacking = llama_weights(2).file();
  CHECK(finding_of_side_file(
            checked_folder({{"config.json", config}, {"adapter_model.safetensors", lacking}}))
            .empty());
  CHECK(finding_of_side_file(
            checked_folder({{"config.json", config}, {"model-rank-0-part-0.safetensors", lacking}}))
            .empty());
  // One of two shards is missing, which is reported as such.
  CHECK(finding_of_side_file(checked_folder({{"config.json", config},
                                             {"model-00001-of-00002.safetensors", lacking}}))
            .empty());
}

TEST_CASE("config: an architecture that is not known is checked by the names that all share") {
  const Keys unknown = {{"model_type", "\"brand_new\""},
                        {"architectures", "[\"BrandNewForCausalLM\"]"},
                        {"head_dim", "2"}};
  auto with = [&](const char* key, const char* value) {
    Keys keys = unknown;
    keys[key] = value;
    return keys;
  };
  CheckReport sound = beside_keys(llama_weights(), unknown);
  CHECK(finding_of_side_file(sound).empty());
  CHECK(is_config_open(sound, "brand_new"));
  CHECK(names_all(only_one(beside_keys(llama_weights(), with("hidden_size", "16")), "config-shape",
                           Severity::kWarning)
                      .cause,
                  {"hidden_size 16", "[12, 8]"}));
  CHECK(names_all(only_one(beside_keys(llama_weights(), with("num_hidden_layers", "4")),
                           "config-count", Severity::kWarning)
                      .cause,
                  {"num_hidden_layers 4", "there are 3"}));
  // A width that only some layers have is not explained by this architecture.
  ConfigWeights wide = llama_weights();
  wide.shapes["model.layers.1.mlp.up_proj.weight"] = {20, 8};
  CHECK(finding_of_side_file(beside_keys(wide, unknown)).empty());
}

TEST_CASE("config: rows of one rank of a padded vocabulary are reported as one part") {
  ConfigWeights weights = llama_weights();
  weights.shapes["model.embed_tokens.weight"] = {16, 8};
  weights.shapes["lm_head.weight"] = {16, 8};
  CheckReport report = beside_keys(weights, {{"vocab_size", "128"}});
  // The finding about the rank's part comes first.
  const auto told = finding_of_side_file(report);
  REQUIRE(told.size() == 1);
  CHECK(names_all(told.front()->cause, {"vocab_size 128", "8 parts of 16 rows are 128"}));
  CHECK(report.verdict == Verdict::kFindings);
}

TEST_CASE("config: a vocabulary that is a few rows short is not a rank's part") {
  ConfigWeights weights = llama_weights();
  for (const char* name : {"model.embed_tokens.weight", "lm_head.weight"})
    weights.shapes[name] = {32000, 8};
  const CheckReport report = beside_keys(weights, {{"vocab_size", "32002"}});
  CHECK(names_all(only_one(report, "config-shape", Severity::kError).cause,
                  {"vocab_size 32002", "32000 rows"}));
  CHECK(std::none_of(report.findings.begin(), report.findings.end(), [](const Finding& finding) {
    return finding.rule == "local-saved-as-global";
  }));
}

TEST_CASE("config: the head of a classifier has a row per name in id2label") {
  ConfigWeights weights = llama_weights();
  weights.shapes.erase("lm_head.weight");
  weights.shapes["score.weight"] = {3, 8};
  Keys keys{{"architectures", "[\"LlamaForSequenceClassification\"]"},
            {"id2label", R"({"0": "a", "1": "b", "2": "c"})"}};
  CHECK(finding_of_side_file(beside_keys(weights, keys)).empty());
  keys["id2label"] = R"({"0": "a", "1": "b"})";
  CHECK(names_all(only_one(beside_keys(weights, keys), "config-shape", Severity::kError).cause,
                  {"id2label", "2", "score.weight [3, 8] has 3 rows"}));
  // Without label names the class has two labels; older configs use num_labels.
  keys.erase("id2label");
  CHECK(finding_of_side_file(beside_keys(weights, keys)).empty());
}

TEST_CASE("config: the head of an image classifier has a row per name in id2label") {
  ConfigWeights weights;
  weights.shapes = {{"vit.layernorm.weight", {8}}, {"classifier.weight", {3, 8}}};
  Keys keys{{"model_type", "\"vit\""},
            {"architectures", "[\"ViTForImageClassification\"]"},
            {"hidden_size", "8"},
            {"id2label", R"({"0": "a", "1": "b", "2": "c"})"}};
  // What else is missing of the model is another rule's.
  const auto causes = [&] {
    std::vector<std::string> of_shapes;
    for (const Finding& finding : beside_config(weights, config_text(keys)).findings) {
      if (finding.rule == "config-shape") of_shapes.push_back(finding.cause);
    }
    return of_shapes;
  };
  CHECK(causes().empty());
  keys["id2label"] = R"({"0": "a", "1": "b", "2": "c", "3": "d"})";
  const auto told = causes();
  REQUIRE(told.size() == 1);
  CHECK(names_all(told.front(), {"id2label", "4", "classifier.weight [3, 8] has 3 rows"}));
  // A class per frame, and the model without a head.
  keys["architectures"] = "[\"ViTForAudioFrameClassification\"]";
  CHECK(causes().empty());
}

TEST_CASE("config: stacked experts with exchanged axes are recognised by the hidden size") {
  ConfigWeights weights = llama_weights();
  weights.shapes["model.layers.0.mlp.experts.gate_up_proj"] = {4, 12, 8};
  weights.shapes["model.layers.0.mlp.experts.down_proj"] = {4, 8, 6};
  Keys keys = {{"model_type", "\"brand_new_moe\""},
               {"architectures", "[\"BrandNewMoeForCausalLM\"]"}};
  CHECK(finding_of_side_file(beside_keys(weights, keys)).empty());
  weights.shapes["model.layers.0.mlp.experts.gate_up_proj"] = {4, 8, 12};
  weights.shapes["model.layers.0.mlp.experts.down_proj"] = {4, 6, 8};
  const CheckReport report = beside_keys(weights, keys);
  const Finding& finding = only_one(report, "config-shape", Severity::kWarning);
  CHECK(names_all(finding.cause, {"hidden_size 8", "transposed", "2 tensors"}));
  // These models store them this way.
  keys = {{"model_type", "\"gpt_oss\""},
          {"architectures", "[\"GptOssForCausalLM\"]"},
          {"intermediate_size", "6"}};
  const CheckReport stored_so = beside_keys(weights, keys);
  for (const Finding* told : finding_of_side_file(stored_so))
    CHECK_MESSAGE(told->rule != "config-shape", told->cause);
}

TEST_CASE("config: a matrix of a known architecture that fits transposed is reported as that") {
  ConfigWeights weights = llama_weights();
  weights.shapes["model.layers.1.mlp.up_proj.weight"] = {8, 10};
  const CheckReport report = beside_keys(weights, {});
  CHECK(names_all(only_one(report, "config-shape", Severity::kError).cause,
                  {"layers.1.mlp.up_proj.weight [8, 10]", "transposed", "[10, 8]"}));
}

TEST_CASE("config: layers that transformers' own export drops are no more than information") {
  const Keys saved = {{"num_nextn_predict_layers", "1"}, {"transformers_version", "\"5.0.0\""}};
  CHECK(names_all(
      only_one(beside_keys(llama_weights(), saved), "config-announces", Severity::kInfo).cause,
      {"num_nextn_predict_layers 1", "0 multi-token prediction"}));
  Keys own_code = saved;
  own_code["auto_map"] = "{\"AutoModel\": \"own.Model\"}";
  only_one(beside_keys(llama_weights(), own_code), "config-announces", Severity::kWarning);
}

TEST_CASE("config: a file of a quantiser next to plain weights is a warning") {
  auto beside = [](const std::string& file, const std::string& text) {
    return checked_folder({{"config.json", bytes_of_text(config_text(llama_keys()))},
                           {"model.safetensors", llama_weights().file()},
                           {file, bytes_of_text(text)}});
  };
  for (const auto& [file, text] : std::map<std::string, std::string>{
           {"hf_quant_config.json", R"({"quantization": {"quant_algo": "NVFP4"}})"},
           {"quantize_config.json", R"({"bits": 4, "group_size": 128})"},
           {"quant_config.json", R"({"w_bit": 4, "q_group_size": 128})"}}) {
    CAPTURE(file);
    CHECK(names_all(only_one(beside(file, text), "config-announces", Severity::kWarning).cause,
                    {file.c_str(), "no weight is quantised"}));
  }
  CHECK(finding_of_side_file(
            beside("hf_quant_config.json",
                   R"({"quantization": {"quant_algo": null, "kv_cache_quant_algo": "FP8"}})"))
            .empty());
  CHECK(finding_of_side_file(beside("quantize_config.json", "[]")).empty());
}

TEST_CASE("config: what it announces and the weights do not have is a warning") {
  auto announced = [](const CheckReport& report) {
    return only_one(report, "config-announces", Severity::kWarning).cause;
  };
  CHECK(names_all(announced(beside_keys(llama_weights(), {{"num_nextn_predict_layers", "1"}})),
                  {"num_nextn_predict_layers 1", "0 multi-token prediction"}));
  CHECK(names_all(announced(beside_keys(llama_weights(),
                                        {{"quantization_config", "{\"quant_method\": \"fp8\"}"}})),
                  {"quantization_config", "fp8", "dequantised"}));
  ConfigWeights packed = llama_weights();
  packed.shapes["model.layers.0.mlp.up_proj.qweight"] = {4, 8};
  CHECK(names_all(announced(beside_keys(packed, {})), {"no quantization_config"}));
  CHECK(finding_of_side_file(
            beside_keys(packed, {{"quantization_config", "{\"quant_method\": \"gptq\"}"}}))
            .empty());
  const Keys seeing = {{"model_type", "\"brand_new_vl\""},
                       {"architectures", "[\"BrandNewVlForConditionalGeneration\"]"},
                       {"vision_config", "{\"model_type\": \"eyes\", \"hidden_size\": 4}"}};
  CHECK(names_all(announced(beside_keys(llama_weights(), seeing)), {"vision_config"}));
  ConfigWeights eyes = llama_weights();
  eyes.shapes["model.vision_tower.layers.0.mlp.weight"] = {4, 4};
  CHECK(finding_of_side_file(beside_keys(eyes, seeing)).empty());
}

TEST_CASE("config: two stored matrices that it ties are compared with --data") {
  const CheckReport report = beside_keys(llama_weights(), {{"tie_word_embeddings", "true"}});
  CHECK(std::any_of(report.unjudged.begin(), report.unjudged.end(), [](const Unjudged& one) {
    return one.what.find("lm_head.weight") != std::string::npos && one.needs == "--data";
  }));
}

TEST_CASE("a model that brings its own code is only warned of") {
  CheckReport report = beside_keys(
      llama_weights(), {{"hidden_size", "16"}, {"auto_map", "{\"AutoModel\": \"mine.Model\"}"}});
  only_one(report, "config-shape", Severity::kWarning);
}

TEST_CASE("parts of a model are compared with the configs that are nested for them") {
  ConfigWeights weights;
  for (const auto& [name, shape] : llama_weights().shapes)
    weights.shapes["language_model." + name] = shape;
  weights.shapes["vision_tower.vision_model.encoder.layers.0.mlp.fc1.weight"] = {7, 5};
  auto report_of = [&](const std::string& text_width, const std::string& vision_layers) {
    Keys text = llama_keys();
    text["hidden_size"] = text_width;
    Keys whole = {{"model_type", "\"llava\""},
                  {"hidden_size", "999"},
                  {"text_config", config_text(text)},
                  {"vision_config", config_text({{"model_type", "\"clip_vision_model\""},
                                                 {"hidden_size", "5"},
                                                 {"intermediate_size", "7"},
                                                 {"num_hidden_layers", vision_layers}})}};
    return beside_config(weights, config_text(whole));
  };
  CHECK(finding_of_side_file(report_of("8", "1")).empty());
  CHECK(names_all(only_one(report_of("16", "1"), "config-shape", Severity::kError).cause,
                  {"text_config.hidden_size 16"}));
  CHECK(names_all(only_one(report_of("8", "2"), "config-count", Severity::kWarning).cause,
                  {"vision_config.num_hidden_layers 2"}));
}

TEST_CASE("config: blocks of a tower are compared with the depth of vision_config") {
  auto told_by = [](int blocks, const char* depth) {
    ConfigWeights weights = llama_weights();
    for (int i = 0; i < blocks; ++i)
      weights.shapes[fmt::format("visual.blocks.{}.norm1.weight", i)] = {4};
    Keys whole = {
        {"model_type", "\"qwen9_vl\""},
        {"architectures", "[\"Qwen9VLForConditionalGeneration\"]"},
        {"text_config", config_text(llama_keys())},
        {"vision_config", fmt::format(R"({{"model_type": "eyes", "depth": {}}})", depth)}};
    return beside_config(weights, config_text(whole));
  };
  CHECK(finding_of_side_file(told_by(3, "3")).empty());
  CHECK(finding_of_side_file(told_by(3, "[3]")).empty());
  CHECK(names_all(only_one(told_by(2, "3"), "config-count", Severity::kWarning).cause,
                  {"vision_config.depth 3"}));
  CHECK(names_all(only_one(told_by(4, "3"), "config-count", Severity::kWarning).cause,
                  {"vision_config.depth 3"}));
}
