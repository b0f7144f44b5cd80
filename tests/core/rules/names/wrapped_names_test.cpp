// Names with a wrapper's parts in them: alone, next to a reference, next to a spec.
#include "core/formats/torch_file/torch_file_support.h"
#include "core/repair/plan/plan.h"
#include "core/rules/names/named_tensors.h"

using namespace shw;
using namespace shw::test;

namespace {

std::string in_layers(const std::string& name, const std::string& part) {
  const std::size_t at = name.find("layers.");
  return at == std::string::npos ? name : name.substr(0, at + 9) + part + name.substr(at + 9);
}

void check_is_repaired(const NamedTensors& tensors, const std::string& config, std::size_t count) {
  const auto beside = config.empty() ? std::map<std::string, std::string>()
                                     : std::map<std::string, std::string>{{"config.json", config}};
  const CheckReport report = checked_tensors(tensors, beside);
  const Finding* finding = find(report, "wrapped-names");
  REQUIRE(finding != nullptr);
  CHECK(finding->severity == Severity::kWarning);
  CHECK(finding->subjects.size() == count);
  REQUIRE(finding->diagnoses.size() == count);
  const NamedTensors healthy = llama_tensors(same_name);
  for (const Diagnosis& diagnosis : finding->diagnoses)
    CHECK(healthy.contains(std::get<Renamed>(diagnosis).fqn));
}

}  // namespace

TEST_CASE("wrapped names: a model's own names raise nothing") {
  CHECK(find(checked_tensors(llama_tensors(same_name), {{"config.json", kLlamaConfig}}),
             "wrapped-names") == nullptr);
  CHECK(find(checked_tensors(llama_tensors(same_name)), "wrapped-names") == nullptr);
}

TEST_CASE("wrapped names: a prefix before all names is dropped") {
  for (const char* prefix : {"_orig_mod.", "module.", "_fsdp_wrapped_module.", "_forward_module.",
                             "module._orig_mod.", "base_model.model."}) {
    INFO(std::string(prefix));
    const auto tensors = llama_tensors([&](const std::string& name) { return prefix + name; });
    check_is_repaired(tensors, "", 11);
    check_is_repaired(tensors, kLlamaConfig, 11);
  }
}

TEST_CASE("wrapped names: a wrapper around each layer is dropped") {
  check_is_repaired(llama_tensors([](const std::string& name) {
                      return in_layers(name, "_checkpoint_wrapped_module.");
                    }),
                    "", 8);
  check_is_repaired(llama_tensors([](const std::string& name) {
                      return "_fsdp_wrapped_module." + in_layers(name, "_fsdp_wrapped_module.");
                    }),
                    "", 11);
}

TEST_CASE("wrapped names: what config.json's architecture does not begin with is dropped") {
  check_is_repaired(llama_tensors([](const std::string& name) { return "policy." + name; }),
                    kLlamaConfig, 11);
  check_is_repaired(llama_tensors([](const std::string& name) { return "model." + name; }),
                    kLlamaConfig, 11);
}

TEST_CASE("wrapped names: base weights next to an adapter are not renamed") {
  NamedTensors tensors =
      llama_tensors([](const std::string& name) { return "base_model.model." + name; });
  tensors["base_model.model.model.layers.0.self_attn.q_proj.lora_A.default.weight"] = {"F32",
                                                                                       {2, 8}};
  tensors["base_model.model.model.layers.0.self_attn.q_proj.lora_B.default.weight"] = {"F32",
                                                                                       {8, 2}};
  const CheckReport report = checked_tensors(tensors);
  const Finding* finding = find(report, "wrapped-names");
  REQUIRE(finding != nullptr);
  CHECK(finding->severity == Severity::kWarning);
  CHECK(finding->diagnoses.empty());
  CHECK(finding->cause.find("merge_and_unload") != std::string::npos);
}

TEST_CASE("wrapped names: modules that PEFT saved whole get their own names") {
  NamedTensors tensors;
  for (int layer = 0; layer < 3; ++layer)
    tensors[fmt::format("model.layers.{}.mlp.up_proj.weight", layer)] = {"F32", {8, 8}};
  tensors["lm_head.modules_to_save.default.weight"] = {"F32", {12, 8}};
  const CheckReport report = checked_tensors(tensors, {{"config.json", "{\"model_type\": \"x\"}"}});
  const Finding* finding = find(report, "wrapped-names");
  REQUIRE(finding != nullptr);
  CHECK(finding->cause.find("lm_head.weight") != std::string::npos);
}

TEST_CASE("renamed tensors: base weights next to an adapter are not renamed") {
  NamedTensors tensors =
      llama_tensors([](const std::string& name) { return "base_model.model." + name; });
  tensors["base_model.model.model.layers.0.self_attn.q_proj.lora_A.default.weight"] = {"F32",
                                                                                       {2, 8}};
  CheckOptions options;
  options.reference = opened_tensors(llama_tensors(same_name));
  const CheckReport report = looked(*opened_tensors(tensors), options);
  const Finding* finding = find(report, "renamed-tensors");
  REQUIRE(finding != nullptr);
  CHECK(finding->diagnoses.empty());
  CHECK(finding->cause.find("merge_and_unload") != std::string::npos);
}

TEST_CASE("wrapped names: names that would be there twice are not planned") {
  NamedTensors tensors = llama_tensors(same_name);
  tensors["_orig_mod.lm_head.weight"] = {"F32", {12, 8}};
  const CheckReport report = checked_tensors(tensors);
  const Finding* finding = find(report, "wrapped-names");
  REQUIRE(finding != nullptr);
  CHECK(finding->diagnoses.empty());
  CHECK(finding->cause.find("Two tensors would get the name") != std::string::npos);
}

TEST_CASE("renamed tensors: next to a reference all ways to differ are reported and planned") {
  const auto reference = opened_tensors(llama_tensors(same_name));
  CheckOptions options;
  options.reference = reference;
  struct Way {
    const char* words;
    std::string (*rename)(const std::string&);
  };
  const Way ways[] = {
      {"_orig_mod", [](const std::string& name) { return "_orig_mod." + name; }},
      {"module.", [](const std::string& name) { return "module." + name; }},
      {"policy.", [](const std::string& name) { return "policy." + name; }},
      {"model.",
       [](const std::string& name) { return name.starts_with("model.") ? name.substr(6) : name; }},
      {"_checkpoint_wrapped_module",
       [](const std::string& name) { return in_layers(name, "_checkpoint_wrapped_module."); }},
      {"up_projection",
       [](const std::string& name) {
         std::string out = name;
         const std::size_t at = out.find("up_proj.");
         return at == std::string::npos ? out : out.replace(at, 8, "up_projection.");
       }},
  };
  for (const Way& way : ways) {
    INFO(std::string(way.words));
    const auto renamed = opened_tensors(llama_tensors(way.rename));
    const CheckReport report = looked(*renamed, options);
    const Finding* finding = find(report, "renamed-tensors");
    REQUIRE(finding != nullptr);
    CHECK(finding->severity == Severity::kError);
    CHECK(finding->cause.find(way.words) != std::string::npos);
    CHECK(finding->diagnoses.size() == finding->subjects.size());
    std::string rules;
    for (const std::string& rule : rules_above_info(report)) rules += rule + " ";
    CHECK(rules == "renamed-tensors ");
    auto plan = make_plan(*renamed, report, {});
    REQUIRE(plan.has_value());
    CHECK(plan->tensors.size() == finding->subjects.size());
  }
}

TEST_CASE("renamed tensors: equal names raise nothing next to a reference") {
  CheckOptions options;
  options.reference = opened_tensors(llama_tensors(same_name));
  CHECK(rules_above_info(looked(*opened_tensors(llama_tensors(same_name)), options)).empty());
}

TEST_CASE("renamed tensors: next to a spec a prefix is reported with both counts") {
  auto spec = std::make_shared<Spec>();
  for (const auto& [name, tensor] : llama_tensors(same_name))
    spec->entries[name].shape = tensor.shape;
  CheckOptions options;
  options.spec = spec;
  const auto renamed =
      opened_tensors(llama_tensors([](const std::string& name) { return "_orig_mod." + name; }));
  const CheckReport report = looked(*renamed, options);
  const Finding* finding = find(report, "renamed-tensors");
  REQUIRE(finding != nullptr);
  CHECK(finding->cause.find("11 of 11 names") != std::string::npos);
  CHECK(finding->diagnoses.size() == 11);
  CHECK(find(report, "missing-key") == nullptr);
}

TEST_CASE("expert suffix: the number goes to its place") {
  NamedTensors tensors;
  for (int i = 0; i < 4; ++i)
    tensors[fmt::format("model.layers.0.mlp.experts.up_proj.weight{}", i)] = {"F32", {8, 4}};
  const CheckReport report = checked_tensors(tensors);
  const Finding* finding = find(report, "expert-suffix");
  REQUIRE(finding != nullptr);
  REQUIRE(finding->diagnoses.size() == 4);
  CHECK(std::get<Renamed>(finding->diagnoses[3]).fqn ==
        "model.layers.0.mlp.experts.3.up_proj.weight");
}

TEST_CASE("wrapped names: a lost `model.` is told where the head shows that the model is whole") {
  const auto lost = [](const std::string& name) {
    return name.starts_with("model.") ? name.substr(6) : name;
  };
  NamedTensors tensors = llama_tensors(lost);
  const CheckReport report = checked_tensors(tensors, {{"config.json", kLlamaConfig}});
  const Finding* finding = find(report, "wrapped-names");
  REQUIRE(finding != nullptr);
  CHECK(finding->severity == Severity::kWarning);
  CHECK(finding->subjects.size() == tensors.size() - 1);
  CHECK(finding->cause.find("lack `model.`") != std::string::npos);
  REQUIRE(finding->remedy.has_value());
  CHECK(finding->remedy->lossless);
  // The inner model alone is saved so.
  tensors.erase("lm_head.weight");
  CHECK(find(checked_tensors(tensors, {{"config.json", kLlamaConfig}}), "wrapped-names") ==
        nullptr);
}

TEST_CASE("wrapped names: a part that is three times in a row is dropped") {
  auto repeated = [](const std::string& part, int times) {
    return [part, times](const std::string& name) {
      std::string out = "model.";
      for (int i = 0; i < times; ++i) out += part + ".";
      return out + name.substr(name.find('.') + 1);
    };
  };
  const CheckReport report = checked_tensors(llama_tensors(repeated("language_model", 3)));
  const Finding* finding = find(report, "wrapped-names");
  REQUIRE(finding != nullptr);
  CHECK(finding->cause.find("model.language_model.") != std::string::npos);
  CHECK(find(checked_tensors(llama_tensors(repeated("language_model", 1))), "wrapped-names") ==
        nullptr);
  // LLaVA's tower is twice.
  CHECK(find(checked_tensors(llama_tensors(repeated("vision_tower", 2))), "wrapped-names") ==
        nullptr);
  CHECK(find(checked_tensors(llama_tensors(repeated("vision_tower", 3))), "wrapped-names") !=
        nullptr);
  // torchvision's SSDlite: "features.0.0.0.weight".
  CHECK(find(checked_tensors(llama_tensors(repeated("0", 3))), "wrapped-names") == nullptr);
}

TEST_CASE("wrapped names: Megatron-FSDP has three modules before the names of its states") {
  NamedTensors tensors;
  for (const auto& [name, tensor] : llama_tensors([](const std::string& one) { return one; })) {
    tensors["model.module." + name] = tensor;
    tensors["optimizer.state.module.module.module." + name + ".exp_avg"] = tensor;
  }
  CHECK(find(checked_tensors(tensors), "wrapped-names") == nullptr);
  tensors["model.module.module.module.module.norm.weight"] = {"F32", {8}};
  CHECK(find(checked_tensors(tensors), "wrapped-names") != nullptr);
}

TEST_CASE("wrapped names: an adapter of mlx-lm among the weights is reported") {
  NamedTensors tensors = llama_tensors([](const std::string& name) {
    const std::size_t at = name.find("q_proj.");
    return at == std::string::npos ? name : name.substr(0, at + 7) + "linear.weight";
  });
  const std::string module = "model.layers.0.self_attn.q_proj.";
  tensors[module + "lora_a"] = {"F32", {8, 4}};
  tensors[module + "lora_b"] = {"F32", {4, 8}};
  const CheckReport report = checked_tensors(tensors, {{"config.json", kLlamaConfig}});
  CHECK(all_causes(report, "wrapped-names").find("mlx_lm.fuse") != std::string::npos);
}

TEST_CASE("wrapped names: FSDP's rows of whole modules get no other name") {
  NamedTensors tensors;
  for (int i = 0; i < 3; ++i)
    tensors[fmt::format("blocks.{}._fsdp_wrapped_module._flat_param", i)] = {"F32", {40}};
  const CheckReport report = checked_tensors(tensors);
  CHECK(find(report, "flat-shard") != nullptr);
  CHECK(find(report, "wrapped-names") == nullptr);
}

TEST_CASE(
    "wrapped names: a part of the model that is in the file twice is reported next to a config") {
  NamedTensors tensors, once;
  for (int layer = 0; layer < 3; ++layer) {
    for (const char* name : {"fc1.weight", "fc2.weight", "q_proj.weight"}) {
      once[fmt::format("model.encoder.layers.{}.{}", layer, name)] = {"F32", {8, 8}};
      once[fmt::format("model.decoder.layers.{}.{}", layer, name)] = {"F32", {8, 8}};
      tensors[fmt::format("encoder.layers.{}.{}", layer, name)] = {"F32", {8, 8}};
    }
  }
  const std::map<std::string, std::string> config = {
      {"config.json", R"({"model_type": "whisper", "architectures": ["Whisper"]})"}};
  CHECK(find(checked_tensors(once, config), "wrapped-names") == nullptr);
  NamedTensors other = once;
  for (const auto& [name, tensor] : tensors) other[name] = {"F32", {4, 4}};
  CHECK(find(checked_tensors(other, config), "wrapped-names") == nullptr);
  tensors.merge(once);
  CHECK(find(checked_tensors(tensors), "wrapped-names") == nullptr);
  const CheckReport report = checked_tensors(tensors, config);
  const Finding* finding = find(report, "wrapped-names");
  REQUIRE(finding != nullptr);
  CHECK(finding->severity == Severity::kWarning);
  CHECK(finding->subjects.size() == 9);
  CHECK(finding->cause.find("9 tensors are in the checkpoint twice") != std::string::npos);
}

TEST_CASE("wrapped names: a prefix in a training's own torch.save file is an info") {
  const auto file_of = [](const std::string& prefix, bool has_step) {
    std::vector<std::pair<std::string, std::string>> items = {
        {prefix + "wte.weight", tensor_call({})}, {prefix + "lm_head.weight", tensor_call({})}};
    if (has_step) items.emplace_back("iter_num", pickled_int(7));
    return to_bytes(state_dict_file(pickled_dict(items), {{"m/data/0", std::string(24, '\1')}}));
  };
  const auto checked_file = [](Bytes file, bool has_config) {
    std::vector<std::pair<std::string, Bytes>> files = {{"ckpt.pt", std::move(file)}};
    if (has_config) files.emplace_back("config.json", bytes_from(kLlamaConfig));
    auto opened = open_checkpoint(memory_directory("made", std::move(files)));
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    const CheckReport report = looked(**opened, {});
    const Finding* finding = find(report, "wrapped-names");
    REQUIRE(finding != nullptr);
    return *finding;
  };
  for (const char* prefix : {"_orig_mod.", "module.", "model._orig_mod."}) {
    CAPTURE(prefix);
    const Finding training = checked_file(file_of(prefix, true), false);
    CHECK(training.severity == Severity::kInfo);
    CHECK(training.cause.find("--strip wrappers") != std::string::npos);
    CHECK(checked_file(file_of(prefix, true), true).severity == Severity::kWarning);
    CHECK(checked_file(file_of(prefix, false), false).severity == Severity::kWarning);
  }
}

TEST_CASE("wrapped names: a trainer's attribute before all names of a timm model is dropped") {
  const auto named = [](const std::string& prefix) {
    NamedTensors tensors;
    for (const char* name : {"cls_token", "blocks.0.attn.qkv.weight", "norm.weight", "head.weight"})
      tensors[prefix + name] = {"F32", {4, 4}};
    return tensors;
  };
  const std::string config =
      R"({"architecture": "vit_tiny_patch16_224", "num_classes": 4, "pretrained_cfg": {}})";
  for (const char* prefix : {"model.", "net."}) {
    const CheckReport report = checked_tensors(named(prefix), {{"config.json", config}});
    const Finding* finding = find(report, "wrapped-names");
    REQUIRE(finding != nullptr);
    CHECK(finding->subjects.size() == 4);
  }
  CHECK(find(checked_tensors(named(""), {{"config.json", config}}), "wrapped-names") == nullptr);
  CHECK(find(checked_tensors(named("encoder."), {{"config.json", config}}), "wrapped-names") ==
        nullptr);
}

TEST_CASE("wrapped names: a compiled model in accelerate's own folder is an info") {
  const NamedTensors compiled =
      llama_tensors([](const std::string& name) { return "_orig_mod." + name; });
  const CheckReport model = checked_tensors(compiled);
  const Finding* alone = find(model, "wrapped-names");
  REQUIRE(alone != nullptr);
  CHECK(alone->severity == Severity::kWarning);
  const CheckReport state = checked_tensors(compiled, {{"random_states_0.pkl", "N."}});
  const Finding* of_state = find(state, "wrapped-names");
  REQUIRE(of_state != nullptr);
  CHECK(of_state->severity == Severity::kInfo);
}
