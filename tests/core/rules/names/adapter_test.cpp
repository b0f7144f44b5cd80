// Adapters of PEFT next to their adapter_config.json, and next to their base.
#include "core/facts/names/adapter_config.h"
#include "core/rules/names/named_tensors.h"

using namespace shw;
using namespace shw::test;

namespace {

const std::string kRoot = "base_model.model.";
const std::string kFile = "adapter_model.safetensors";
const std::string kConfig =
    R"({"peft_type": "LORA", "r": 4, "target_modules": ["q_proj", "v_proj"],
        "modules_to_save": null, "rank_pattern": {}, "use_dora": false})";

NamedTensors adapter_tensors() {
  NamedTensors out;
  for (int i = 0; i < 2; ++i) {
    for (const char* module : {"q_proj", "v_proj"}) {
      const std::string name = fmt::format("{}model.layers.{}.self_attn.{}.", kRoot, i, module);
      out[name + "lora_A.weight"] = {"F32", {4, 8}};
      out[name + "lora_B.weight"] = {"F32", {8, 4}};
    }
  }
  return out;
}

CheckReport checked_adapter(const NamedTensors& tensors, const std::string& config = kConfig,
                            Depth depth = Depth::kHeaders) {
  return checked_tensors(tensors, {{"adapter_config.json", config}}, depth, kFile);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

template <class Rename>
NamedTensors renamed_adapter(Rename rename) {
  NamedTensors out;
  for (const auto& [name, tensor] : adapter_tensors()) out[rename(name)] = tensor;
  return out;
}

}  // namespace

TEST_CASE("adapter: one that fits its config raises nothing") {
  CHECK(rules_above_info(checked_adapter(adapter_tensors(), kConfig, Depth::kData)).empty());
}

TEST_CASE("adapter: tensors without an element are reported") {
  NamedTensors tensors = adapter_tensors();
  for (auto& [name, tensor] : tensors) tensor.shape = {0};
  const CheckReport report = checked_adapter(tensors);
  const Finding* finding = find(report, "empty-tensors");
  REQUIRE(finding != nullptr);
  CHECK(finding->severity == Severity::kError);
  CHECK(finding->cause.find("8 of 8 tensors are empty") != std::string::npos);
}

TEST_CASE("adapter: a rank that is not r is reported with both numbers") {
  NamedTensors tensors = adapter_tensors();
  tensors[kRoot + "model.layers.0.self_attn.q_proj.lora_A.weight"].shape = {2, 8};
  const CheckReport report = checked_adapter(tensors);
  CHECK(all_causes(report, "adapter-contradicts").find("[2, 8], r 4") != std::string::npos);
}

TEST_CASE("adapter: a rank pattern is the rank of its modules") {
  NamedTensors tensors = adapter_tensors();
  for (auto& [name, tensor] : tensors) {
    if (name.find("q_proj") == std::string::npos) continue;
    tensor.shape = name.find("lora_A") != std::string::npos ? Extents{2, 8} : Extents{8, 2};
  }
  const std::string config =
      replaced(kConfig, "\"rank_pattern\": {}", R"("rank_pattern": {"q_proj": 2})");
  CHECK(rules_above_info(checked_adapter(tensors, config)).empty());
}

TEST_CASE("adapter: a config of another kind of adapter is reported") {
  const std::string other = replaced(kConfig, "\"LORA\"", "\"IA3\"");
  REQUIRE(other != kConfig);
  CHECK_FALSE(rules_above_info(checked_adapter(adapter_tensors(), other)).empty());
  const std::string alike = replaced(kConfig, "\"LORA\"", "\"ADALORA\"");
  CHECK(all_causes(checked_adapter(adapter_tensors(), alike), "adapter-contradicts")
            .find("peft_type") == std::string::npos);
}

TEST_CASE("adapter: a target module without a tensor is reported") {
  const std::string config = replaced(kConfig, "\"q_proj\"", R"("q_proj", "k_proj")");
  CHECK(all_causes(checked_adapter(adapter_tensors(), config), "adapter-contradicts")
            .find("k_proj") != std::string::npos);
}

TEST_CASE("adapter: a target that the base may lack is only an info") {
  const std::string config = replaced(kConfig, "\"q_proj\"", R"("q_proj", "W_pack")");
  CHECK(rules_above_info(checked_adapter(adapter_tensors(), config)).empty());
}

TEST_CASE("adapter: a module that is saved whole and not there is reported") {
  const std::string config =
      replaced(kConfig, "\"modules_to_save\": null", R"("modules_to_save": ["lm_head"])");
  CHECK(all_causes(checked_adapter(adapter_tensors(), config), "adapter-contradicts")
            .find("lm_head") != std::string::npos);
}

TEST_CASE("adapter: of the two names of a classification head one is enough") {
  const std::string config = replaced(kConfig, "\"modules_to_save\": null",
                                      R"("modules_to_save": ["classifier", "score"])");
  NamedTensors tensors = adapter_tensors();
  CHECK_FALSE(rules_above_info(checked_adapter(tensors, config)).empty());
  tensors[kRoot + "score.weight"] = {"F32", {2, 8}};
  CHECK(rules_above_info(checked_adapter(tensors, config)).empty());
}

TEST_CASE("adapter: a module of several target_parameters is wrapped once for each") {
  NamedTensors tensors = adapter_tensors();
  for (const char* matrix : {"lora_A", "lora_B"})
    tensors[fmt::format("{}model.layers.0.mlp.experts.base_layer.{}.weight", kRoot, matrix)] = {
        "F32", {4, 4}};
  const std::string config =
      replaced(kConfig, "\"use_dora\"", "\"target_parameters\": [\"a\", \"b\"], \"use_dora\"");
  CHECK(rules_above_info(checked_adapter(tensors, config)).empty());
  CHECK_FALSE(rules_above_info(checked_adapter(tensors)).empty());
}

TEST_CASE("adapter: a bias of the second matrix alone is not a half") {
  NamedTensors tensors = adapter_tensors();
  for (const auto& [name, tensor] : adapter_tensors()) {
    if (name.ends_with("lora_B.weight"))
      tensors[replaced(name, "B.weight", "B.bias")] = {"F32", {8}};
  }
  CHECK(rules_above_info(checked_adapter(tensors)).empty());
}

TEST_CASE("adapter: halves under the names of other trainers are reported") {
  for (const auto& [down, up] :
       {std::pair("_q.lora_down.", "_q.lora_up."), std::pair(".q.lora.down.", ".q.lora.up.")}) {
    CAPTURE(down);
    NamedTensors tensors;
    for (int block = 0; block < 3; ++block) {
      tensors[fmt::format("lora_unet_{}{}weight", block, down)] = {"F32", {4, 8}};
      tensors[fmt::format("lora_unet_{}{}weight", block, up)] = {"F32", {8, 4}};
    }
    const auto checked = [&] {
      return checked_tensors(tensors, {}, Depth::kHeaders, "lora.safetensors");
    };
    CHECK(rules_above_info(checked()).empty());
    tensors.erase(fmt::format("lora_unet_1{}weight", up));
    CHECK(find(checked(), "half-pair") != nullptr);
  }
}

TEST_CASE("adapter: magnitude vectors that the config asks for are reported where they lack") {
  const std::string config = replaced(kConfig, "\"use_dora\": false", "\"use_dora\": true");
  CHECK(find(checked_adapter(adapter_tensors(), config), "adapter-contradicts") != nullptr);
}

TEST_CASE("adapter: names that PEFT does not read are renamed") {
  auto doubled = renamed_adapter([](const std::string& name) { return kRoot + name; });
  auto bare = renamed_adapter([](const std::string& name) { return name.substr(kRoot.size()); });
  auto own = renamed_adapter(
      [](const std::string& name) { return replaced(name, ".weight", ".default.weight"); });
  auto compiled = renamed_adapter(
      [](const std::string& name) { return replaced(name, kRoot, kRoot + "_orig_mod."); });
  const NamedTensors healthy = adapter_tensors();
  for (const NamedTensors& tensors : {doubled, bare, own, compiled}) {
    INFO(tensors.begin()->first);
    const CheckReport report = checked_adapter(tensors);
    const Finding* finding = find(report, "adapter-contradicts");
    REQUIRE(finding != nullptr);
    REQUIRE(finding->diagnoses.size() == 8);
    for (const Diagnosis& diagnosis : finding->diagnoses)
      CHECK(healthy.contains(std::get<Renamed>(diagnosis).fqn));
  }
}

TEST_CASE("adapter: names without the part that holds the layers are reported and renamed") {
  const auto without_model = [](const std::string& name) {
    return replaced(name, kRoot + "model.", kRoot);
  };
  const NamedTensors lacking = renamed_adapter(without_model);
  const std::string causal = replaced(kConfig, "\"r\"", "\"task_type\": \"CAUSAL_LM\", \"r\"");
  const CheckReport report = checked_adapter(lacking, causal);
  const Finding* finding = find(report, "adapter-contradicts");
  REQUIRE(finding != nullptr);
  REQUIRE(finding->diagnoses.size() == 8);
  const NamedTensors healthy = adapter_tensors();
  for (const Diagnosis& diagnosis : finding->diagnoses)
    CHECK(healthy.contains(std::get<Renamed>(diagnosis).fqn));
  CHECK(rules_above_info(checked_adapter(healthy, causal)).empty());
  // Of a model without a head the layers are in the model itself.
  CHECK(rules_above_info(checked_adapter(lacking)).empty());
  const std::string of_class =
      replaced(kConfig, "\"r\"", R"("auto_mapping": {"base_model_class": "LlamaModel"}, "r")");
  CHECK(rules_above_info(checked_adapter(lacking, of_class)).empty());
  CHECK(all_causes(checked_adapter(healthy, of_class), "adapter-contradicts").find("LlamaModel") !=
        std::string::npos);
}

TEST_CASE("adapter: half of PEFT's root is taken for the whole") {
  const auto half = renamed_adapter(
      [](const std::string& name) { return replaced(name, kRoot + "model.", "base_model."); });
  const std::string causal = replaced(kConfig, "\"r\"", "\"task_type\": \"CAUSAL_LM\", \"r\"");
  const CheckReport report = checked_adapter(half, causal);
  const Finding* finding = find(report, "adapter-contradicts");
  REQUIRE(finding != nullptr);
  REQUIRE(finding->diagnoses.size() == 8);
  const NamedTensors healthy = adapter_tensors();
  for (const Diagnosis& diagnosis : finding->diagnoses)
    CHECK(healthy.contains(std::get<Renamed>(diagnosis).fqn));
}

TEST_CASE("adapter: whole weights of layers that are not saved modules are reported") {
  NamedTensors tensors = adapter_tensors();
  tensors[kRoot + "model.layers.0.self_attn.o_proj.weight"] = {"F32", {8, 8}};
  CHECK(all_causes(checked_adapter(tensors), "adapter-contradicts").find("o_proj") !=
        std::string::npos);
  for (const char* saved : {"self_attn.o_proj", "proj"}) {
    const std::string config = replaced(kConfig, "\"modules_to_save\": null",
                                        fmt::format("\"modules_to_save\": [\"{}\"]", saved));
    CHECK(rules_above_info(checked_adapter(tensors, config)).empty());
  }
}

TEST_CASE("adapter: embeddings, heads and biases may be saved whole without being listed") {
  NamedTensors tensors = adapter_tensors();
  tensors[kRoot + "model.embed_tokens.weight"] = {"F32", {12, 8}};
  tensors[kRoot + "model.embed_tokens.base_layer.weight"] = {"F32", {12, 8}};
  tensors[kRoot + "lm_head.weight"] = {"F32", {12, 8}};
  tensors[kRoot + "model.layers.0.self_attn.q_proj.bias"] = {"F32", {8}};
  CHECK(rules_above_info(checked_adapter(tensors)).empty());
}

TEST_CASE("adapter: a whole model in the adapter's file is reported") {
  const CheckReport report = checked_adapter(llama_tensors(same_name));
  const Finding* finding = find(report, "adapter-contradicts");
  REQUIRE(finding != nullptr);
  CHECK(finding->cause.find("no LoRA matrix") != std::string::npos);
  const std::string rows = R"({"peft_type": "LORA", "r": 4, "target_modules": [],
                               "trainable_token_indices": [1, 2]})";
  NamedTensors tokens;
  tokens[kRoot + "model.embed_tokens.token_adapter.trainable_tokens_delta"] = {"F32", {2, 8}};
  CHECK(rules_above_info(checked_adapter(tokens, rows)).empty());
}

TEST_CASE("adapter: values that PEFT stops at are reported") {
  CHECK_FALSE(rules_above_info(checked_adapter(adapter_tensors(),
                                               replaced(kConfig, "\"peft_type\": \"LORA\", ", "")))
                  .empty());
  CHECK_FALSE(rules_above_info(
                  checked_adapter(adapter_tensors(), replaced(kConfig, "\"r\": 4", "\"r\": 0")))
                  .empty());
  const std::string scale = replaced(kConfig, "\"r\": 4", "\"r\": 4, \"lora_alpha\": null");
  CHECK_FALSE(rules_above_info(checked_adapter(adapter_tensors(), scale)).empty());
  CHECK(rules_above_info(checked_adapter(adapter_tensors(), replaced(scale, "null", "8"))).empty());
  CHECK_FALSE(
      rules_above_info(checked_adapter(adapter_tensors(), replaced(scale, "null", "0"))).empty());
}

TEST_CASE("adapter: a prompt of another length than its config says is reported") {
  const auto prompt = [](int submodules) {
    return fmt::format(R"({{"peft_type": "PROMPT_TUNING", "num_virtual_tokens": 4,
                           "num_transformer_submodules": {}}})",
                       submodules);
  };
  NamedTensors tensors;
  tensors["prompt_embeddings"] = {"F32", {8, 16}};
  CHECK(rules_above_info(checked_adapter(tensors, prompt(2))).empty());
  CHECK_FALSE(rules_above_info(checked_adapter(tensors, prompt(1))).empty());
}

TEST_CASE("adapter: its config in the folder of a whole model is reported") {
  const NamedTensors model = llama_tensors(same_name);
  std::map<std::string, std::string> beside = {{"config.json", kLlamaConfig},
                                               {"adapter_config.json", kConfig}};
  CHECK(find(checked_tensors(model, beside), "adapter-contradicts")->severity ==
        Severity::kWarning);
  beside["adapter_model.bin"] = "of an adapter";
  const auto opened = opened_tensors(model, beside);
  const auto severity_beside = [&](const NamedTensors& base) {
    auto reference =
        open_checkpoint(memory_directory("base", {{"model.safetensors", tensor_file(base)}}));
    REQUIRE(reference.has_value());
    CheckOptions options;
    options.reference = *reference;
    const CheckReport report = looked(*opened, options);
    const Finding* finding = find(report, "adapter-contradicts");
    REQUIRE(finding != nullptr);
    return finding->severity;
  };
  NamedTensors base = model;
  CHECK(severity_beside(base) == Severity::kInfo);
  base["lm_head.weight"].value = 3;
  CHECK(severity_beside(base) == Severity::kInfo);
  base["model.layers.0.self_attn.q_proj.weight"].value = 3;
  CHECK(severity_beside(base) == Severity::kWarning);
}

TEST_CASE("adapter: whole tensors are compared with the base's shapes") {
  CheckOptions options;
  options.reference = opened_tensors(llama_tensors(same_name));
  NamedTensors tensors;
  const std::string name = kRoot + "model.layers.0.self_attn.q_proj.";
  tensors[name + "lora_A.weight"] = {"F32", {4, 8}};
  tensors[name + "lora_B.weight"] = {"F32", {8, 4}};
  const std::string config =
      replaced(replaced(kConfig, ", \"v_proj\"", ""), "\"modules_to_save\": null",
               "\"modules_to_save\": [\"lm_head\"]");
  for (const std::int64_t rows : {12, 16}) {
    tensors[kRoot + "lm_head.weight"] = {"F32", {rows, 8}};
    const CheckReport report =
        looked(*opened_tensors(tensors, {{"adapter_config.json", config}}, kFile), options);
    CHECK(rules_above_info(report).empty() == (rows == 12));
  }
}

TEST_CASE("adapter: one rank's rows among zeros are reported") {
  NamedTensors tensors = adapter_tensors();
  for (auto& [name, tensor] : tensors) tensor.rows_with_value = tensor.shape[0] / 2;
  const CheckReport report = checked_adapter(tensors, kConfig, Depth::kData);
  CHECK(all_causes(report, "zero-weights").find("1 of 2 equal parts") != std::string::npos);
}

TEST_CASE("adapter: that a training left all second matrices as LoRA starts them is a warning") {
  NamedTensors tensors = adapter_tensors();
  std::size_t left = 0;
  for (auto& [name, tensor] : tensors) {
    if (name.find("lora_B") != std::string::npos && left++ > 0) tensor.value = 0;
  }
  const CheckReport some = checked_adapter(tensors, kConfig, Depth::kData);
  CHECK(rules_above_info(some).empty());
  CHECK(find(some, "zero-weights") != nullptr);
  for (auto& [name, tensor] : tensors)
    if (name.find("lora_B") != std::string::npos) tensor.value = 0;
  const CheckReport fresh = checked_adapter(tensors, kConfig, Depth::kData);
  CHECK(rules_above_info(fresh).empty());
  CHECK(find(fresh, "zero-weights") != nullptr);
  CheckOptions options;
  options.depth = Depth::kData;
  const CheckReport trained =
      looked(*opened_tensors(
                 tensors, {{"adapter_config.json", kConfig}, {"trainer_state.json", "{}"}}, kFile),
             options);
  CHECK(rules_above_info(trained) == std::vector<std::string>{"zero-weights"});
  for (auto& [name, tensor] : tensors) tensor.value = 0;
  const CheckReport unwritten = checked_adapter(tensors, kConfig, Depth::kData);
  CHECK(rules_above_info(unwritten) == std::vector<std::string>{"zero-weights"});
}

TEST_CASE("adapter: next to its base the sizes and modules are compared") {
  CheckOptions options;
  options.reference = opened_tensors(llama_tensors(same_name));
  const std::string config = replaced(kConfig, ", \"v_proj\"", "");
  const auto beside_base = [&](const NamedTensors& adapter) {
    return looked(*opened_tensors(adapter, {{"adapter_config.json", config}}, kFile), options);
  };
  NamedTensors tensors;
  const std::string name = kRoot + "model.layers.0.self_attn.q_proj.";
  tensors[name + "lora_A.weight"] = {"F32", {4, 8}};
  tensors[name + "lora_B.weight"] = {"F32", {8, 4}};
  CHECK(rules_above_info(beside_base(tensors)).empty());
  tensors[name + "lora_A.weight"].shape = {4, 6};
  CHECK(all_causes(beside_base(tensors), "adapter-contradicts").find("[4, 6]") !=
        std::string::npos);
  tensors[kRoot + "model.layers.9.self_attn.q_proj.lora_A.weight"] = {"F32", {4, 8}};
  CHECK(all_causes(beside_base(tensors), "adapter-contradicts").find("layers.9") !=
        std::string::npos);
}

TEST_CASE("adapter: next to its base the part that holds the layers is compared") {
  CheckOptions options;
  options.reference = opened_tensors(llama_tensors(same_name), {{"config.json", kLlamaConfig}});
  const auto beside_base = [&](const std::string& front, const std::string& task) {
    NamedTensors adapter;
    for (const auto& [name, tensor] : adapter_tensors()) {
      if (name.find("v_proj") == std::string::npos)
        adapter[replaced(name, kRoot + "model.", kRoot + front)] = tensor;
    }
    const std::string config = replaced(replaced(kConfig, ", \"v_proj\"", ""), "\"r\"",
                                        "\"task_type\": \"" + task + "\", \"r\"");
    return rules_above_info(
        looked(*opened_tensors(adapter, {{"adapter_config.json", config}}, kFile), options));
  };
  CHECK(beside_base("model.", "CAUSAL_LM").empty());
  CHECK_FALSE(beside_base("", "CAUSAL_LM").empty());
  CHECK_FALSE(beside_base("model.model.", "CAUSAL_LM").empty());
  // AutoModel builds the body of this base alone.
  CHECK(beside_base("", "FEATURE_EXTRACTION").empty());
}

TEST_CASE("adapter: next to its base parameters of joined experts are modules of it") {
  NamedTensors base = llama_tensors(same_name);
  for (int expert = 0; expert < 2; ++expert)
    base[fmt::format("model.layers.0.mlp.experts.{}.up_proj.weight", expert)] = {"F32", {8, 8}};
  CheckOptions options;
  options.reference = opened_tensors(base);
  NamedTensors tensors;
  for (const char* module : {"mlp.experts.", "mlp.experts.base_layer."}) {
    tensors[kRoot + "model.layers.0." + module + "lora_A.weight"] = {"F32", {4, 8}};
    tensors[kRoot + "model.layers.0." + module + "lora_B.weight"] = {"F32", {8, 4}};
  }
  const std::string config = R"({"peft_type": "LORA", "r": 4, "target_modules": [],
      "target_parameters": ["mlp.experts.gate_up_proj", "mlp.experts.down_proj"]})";
  const auto adapter = opened_tensors(tensors, {{"adapter_config.json", config}}, kFile);
  CHECK(rules_above_info(looked(*adapter, options)).empty());
}

TEST_CASE("adapter: one of trained whole weights is not another model than its base") {
  CheckOptions options;
  options.reference = opened_tensors(llama_tensors(same_name));
  NamedTensors tensors;
  tensors[kRoot + "model.layers.0.input_layernorm.weight"] = {"F32", {8}};
  const std::string config = R"({"peft_type": "LN_TUNING"})";
  const auto adapter = opened_tensors(tensors, {{"adapter_config.json", config}}, kFile);
  CHECK(rules_above_info(looked(*adapter, options)).empty());
}

TEST_CASE("adapter: a module that one layer lacks is reported") {
  NamedTensors tensors;
  for (int layer = 0; layer < 4; ++layer) {
    for (const auto& [name, tensor] : adapter_tensors())
      tensors[replaced(name, ".0.", fmt::format(".{}.", layer))] = tensor;
  }
  CHECK(rules_above_info(checked_adapter(tensors)).empty());
  const auto without = [&](const std::string& part) {
    NamedTensors out;
    for (const auto& [name, tensor] : tensors) {
      if (name.find(part) == std::string::npos) out[name] = tensor;
    }
    return out;
  };
  for (const char* part : {".1.", ".2.self_attn.v_proj", ".3.self_attn.v_proj"}) {
    CAPTURE(part);
    const CheckReport report = checked_adapter(without(part));
    CHECK(all_causes(report, "adapter-contradicts").find(part) != std::string::npos);
  }
  const std::string some =
      replaced(kConfig, "\"use_dora\"", "\"layers_to_transform\": [0, 2, 3], \"use_dora\"");
  CHECK(rules_above_info(checked_adapter(without(".1."), some)).empty());
  // Layers of another kind lack it too.
  CHECK(rules_above_info(checked_adapter(without(".0."))).empty());
}

TEST_CASE("adapter: layers that layers_to_transform does not list, or lists for nothing") {
  const auto with = [](const std::string& layers) {
    return replaced(kConfig, "\"use_dora\"",
                    "\"layers_to_transform\": " + layers + ", \"use_dora\"");
  };
  CHECK(rules_above_info(checked_adapter(adapter_tensors(), with("[0, 1]"))).empty());
  CHECK(rules_above_info(checked_adapter(adapter_tensors(), with("null"))).empty());
  for (const char* layers : {"[1]", "1"}) {
    CAPTURE(layers);
    const CheckReport report = checked_adapter(adapter_tensors(), with(layers));
    CHECK(all_causes(report, "adapter-contradicts").find("does not list") != std::string::npos);
  }
  const CheckReport report = checked_adapter(adapter_tensors(), with("[0, 1, 7, 9]"));
  CHECK(all_causes(report, "adapter-contradicts").find("layers 7 and 9") != std::string::npos);
}

TEST_CASE("adapter: one without its config is reported") {
  const CheckReport report = checked_tensors(adapter_tensors(), {}, Depth::kHeaders, kFile);
  CHECK(find(report, "adapter-contradicts") != nullptr);
  const CheckReport other =
      checked_tensors(adapter_tensors(), {}, Depth::kHeaders, "model.safetensors");
  CHECK(find(other, "adapter-contradicts") == nullptr);
}

TEST_CASE("adapter: modules that exclude_modules leaves out are not expected") {
  const std::string listing = replaced(kConfig, "\"v_proj\"", R"("v_proj", "k_proj")");
  CHECK_FALSE(rules_above_info(checked_adapter(adapter_tensors(), listing)).empty());
  const std::string excluding =
      replaced(listing, "\"use_dora\"", R"("exclude_modules": ["k_proj"], "use_dora")");
  CHECK(rules_above_info(checked_adapter(adapter_tensors(), excluding)).empty());
}

TEST_CASE("adapter: a head that is tied to a target is not another module") {
  NamedTensors tensors = adapter_tensors();
  tensors[kRoot + "lm_head.lora_A.weight"] = {"F32", {4, 8}};
  tensors[kRoot + "lm_head.lora_B.weight"] = {"F32", {16, 4}};
  CHECK_FALSE(rules_above_info(checked_adapter(tensors)).empty());
  const std::string tying =
      replaced(kConfig, "\"use_dora\"", "\"ensure_weight_tying\": true, \"use_dora\"");
  CHECK(rules_above_info(checked_adapter(tensors, tying)).empty());
}

TEST_CASE("adapter: a layer that lacks one module of a part is reported at either end") {
  for (const char* layer : {"0", "1"}) {
    NamedTensors tensors = adapter_tensors();
    std::erase_if(tensors, [&](const auto& one) {
      return one.first.find(fmt::format("layers.{}.self_attn.q_proj.", layer)) != std::string::npos;
    });
    CHECK(tensors.size() < adapter_tensors().size());
    CHECK_FALSE(rules_above_info(checked_adapter(tensors)).empty());
  }
}
