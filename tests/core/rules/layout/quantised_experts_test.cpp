// Stacked experts with a scale per group: the scales have the axes of a weight, and other sizes.
#include "core/rules/names/named_tensors.h"

using namespace shw;
using namespace shw::test;

TEST_CASE("placement-axis-moved: scales of quantised experts are no family of their own") {
  constexpr std::int64_t kExperts = 4, kHidden = 512, kInner = 128, kGroup = 64, kPacked = 8;
  NamedTensors tensors;
  const auto add_quantised = [&](const std::string& module, Extents rows, std::int64_t columns) {
    const auto with = [&](std::int64_t last) {
      auto shape = rows;
      shape.push_back(last);
      return shape;
    };
    tensors[module + ".weight"] = {"U32", with(columns / kPacked)};
    tensors[module + ".scales"] = {"BF16", with(columns / kGroup)};
    tensors[module + ".biases"] = {"BF16", with(columns / kGroup)};
  };
  for (int i = 0; i < 2; ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i);
    add_quantised(layer + "mlp.switch_mlp.gate_proj", {kExperts, kInner}, kHidden);
    add_quantised(layer + "mlp.switch_mlp.up_proj", {kExperts, kInner}, kHidden);
    add_quantised(layer + "mlp.switch_mlp.down_proj", {kExperts, kHidden}, kInner);
    tensors[layer + "input_layernorm.weight"] = {"BF16", {kHidden}};
  }
  add_quantised("model.embed_tokens", {1000}, kHidden);
  tensors["model.norm.weight"] = {"BF16", {kHidden}};
  const CheckReport report =
      checked_tensors(tensors, {{"config.json", R"({"model_type": "of_nobody",
                                    "quantization": {"group_size": 64, "bits": 4}})"}});
  CHECK(find(report, "placement-axis-moved") == nullptr);
}
