// Names in adapters: those that PEFT, vLLM and diffusers do not read, and what a name says.
#include "core/facts/names/adapter_config.h"
#include "core/rules/names/named_tensors.h"

using namespace shw;
using namespace shw::test;

namespace {

const std::string kOneTarget = R"({"peft_type": "LORA", "r": 4, "target_modules": ["q_proj"]})";

NamedTensors lora_under(const std::string& root, const std::string& end) {
  NamedTensors out;
  for (int i = 0; i < 2; ++i) {
    const std::string name = fmt::format("{}layers.{}.self_attn.q_proj.", root, i);
    out[name + "lora_A" + end] = {"F32", {4, 8}};
    out[name + "lora_B" + end] = {"F32", {8, 4}};
  }
  return out;
}

}  // namespace

TEST_CASE("adapter: matrices of all experts in one tensor are not names of PEFT") {
  const std::string file = "adapter_model.safetensors", root = "base_model.model.model.";
  NamedTensors tensors = lora_under(root, ".weight");
  CHECK(rules_above_info(
            checked_tensors(tensors, {{"adapter_config.json", kOneTarget}}, Depth::kHeaders, file))
            .empty());
  tensors[root + "layers.0.mlp.experts.lora_gate_and_up_A"] = {"F32", {2, 8, 4}};
  const CheckReport report =
      checked_tensors(tensors, {{"adapter_config.json", kOneTarget}}, Depth::kHeaders, file);
  const Finding* finding = find(report, "adapter-contradicts");
  REQUIRE(finding != nullptr);
  CHECK(finding->cause.find("lora_gate_and_up_A") != std::string::npos);
}

TEST_CASE("adapter: its own name in a file without a config is taken out") {
  const std::string file = "pytorch_lora_weights.safetensors", root = "unet.down_blocks.1.";
  const CheckReport sound = checked_tensors(lora_under(root, ".weight"), {}, Depth::kHeaders, file);
  CHECK(rules_above_info(sound).empty());
  const CheckReport report =
      checked_tensors(lora_under(root, ".default_0.weight"), {}, Depth::kHeaders, file);
  const Finding* finding = find(report, "adapter-contradicts");
  REQUIRE(finding != nullptr);
  CHECK(finding->subjects.size() == 4);
  CHECK(finding->cause.find(root + "layers.0.self_attn.q_proj.lora_A.weight") != std::string::npos);
  CHECK(finding->remedy.has_value());
  // The state dict of a running PEFT model, saved by a trainer for itself.
  const NamedTensors running = lora_under("base_model.model.model.", ".default.weight");
  CHECK(rules_above_info(checked_tensors(running, {}, Depth::kHeaders, file)).empty());
}

TEST_CASE("adapter: the layer of a module is the number that PEFT takes") {
  AdapterConfig config;
  CHECK(layer_of_module(config, "model.layers.3.self_attn.q_proj") == 3);
  CHECK(layer_of_module(config, "model.layers.3.mlp.experts.5.up_proj") == 3);
  CHECK(layer_of_module(config, "layers.3.up_proj") == std::nullopt);
  CHECK(layer_of_module(config, "model.head.0") == std::nullopt);
  config.layer_patterns = {"layers"};
  CHECK(layer_of_module(config, "model.layers.3.mlp.experts.5.up_proj") == 3);
  CHECK(layer_of_module(config, "layers.4.mlp.up_proj") == 4);
  CHECK(layer_of_module(config, "model.h.3.attn.c_attn") == std::nullopt);
}

TEST_CASE("adapter: second matrices of zeros are reported in kohya's names too") {
  NamedTensors tensors;
  for (int i = 0; i < 3; ++i) {
    const std::string name = fmt::format("lora_unet_down_blocks_{}_attn_to_q.lora_", i);
    tensors[name + "down.weight"] = {"F32", {4, 8}};
    tensors[name + "up.weight"] = {"F32", {8, 4}};
    tensors[name + "up.weight"].value = 0;
  }
  const CheckReport report = checked_tensors(tensors, {}, Depth::kData);
  REQUIRE(find(report, "zero-weights") != nullptr);
  CHECK(find(report, "zero-weights")->severity == Severity::kInfo);
}
