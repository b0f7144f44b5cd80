// A quantised model held against the plain one that it was made of, and the other way round.
#include "core/rules/names/named_tensors.h"

using namespace shw;
using namespace shw::test;

namespace {

using Parts = std::map<std::string, NamedTensor>;  // behind "model.layers.N.up_proj"

const Parts kPlainParts = {{".weight", {"BF16", {64, 32}}}};

struct QuantisedForm {
  const char* settings;
  Parts parts;
};

const std::vector<QuantisedForm>& quantised_forms() {
  static const std::vector<QuantisedForm> kForms = {
      {R"({"quant_method": "fp8", "weight_block_size": [32, 32]})",
       {{".weight", {"F8_E4M3", {64, 32}}}, {".weight_scale_inv", {"F32", {2, 1}}}}},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 32})",
       {{".qweight", {"I32", {4, 64}}},
        {".qzeros", {"I32", {1, 8}}},
        {".scales", {"F16", {1, 64}}},
        {".g_idx", {"I32", {32}, 0}}}},
      {R"({"quant_method": "modelopt"})",
       {{".weight", {"U8", {64, 16}}},
        {".weight_scale", {"F8_E4M3", {64, 2}}},
        {".weight_scale_2", {"F32", {}}}}},
  };
  return kForms;
}

NamedTensors four_layers_of(const Parts& parts, const std::string& first = "model.") {
  NamedTensors out;
  for (int i = 0; i < 4; ++i)
    for (const auto& [name, tensor] : parts)
      out[fmt::format("{}layers.{}.up_proj{}", first, i, name)] = tensor;
  out[first + "norm.weight"] = {"BF16", {32}};
  return out;
}

std::shared_ptr<const Checkpoint> opened_with(const NamedTensors& tensors,
                                              const std::string& settings = "") {
  if (settings.empty()) return opened_tensors(tensors);
  return opened_tensors(tensors, {{"config.json", fmt::format(R"({{"model_type": "of_nobody",
                                   "quantization_config": {}}})",
                                                              settings)}});
}

CheckReport checked_with(const std::shared_ptr<const Checkpoint>& checkpoint,
                         const std::shared_ptr<const Checkpoint>& reference) {
  CheckOptions options;
  options.depth = Depth::kHeaders;
  options.reference = reference;
  return looked(*checkpoint, options);
}

const Finding* not_compared(const CheckReport& report) {
  for (const Finding& finding : report.findings)
    if (!finding.evidence.empty() && finding.evidence.front().first == "quantised_side")
      return &finding;
  return nullptr;
}

}  // namespace

TEST_CASE("against: a quantised model and its plain one differ by design") {
  for (const QuantisedForm& form : quantised_forms()) {
    INFO(std::string(form.settings));
    const auto quantised = opened_with(four_layers_of(form.parts), form.settings);
    const auto plain = opened_with(four_layers_of(kPlainParts));
    const CheckReport report = checked_with(quantised, plain);
    CHECK(rules_above_info(report).empty());
    REQUIRE(not_compared(report) != nullptr);
    CHECK(not_compared(report)->subjects.size() == 4);
    CHECK(not_compared(report)->cause.find("@dequantised") != std::string::npos);
    const CheckReport reversed = checked_with(plain, quantised);
    CHECK(rules_above_info(reversed).empty());
    REQUIRE(not_compared(reversed) != nullptr);
    CHECK(not_compared(reversed)->subjects.front() == "model.layers.0.up_proj.weight");
  }
}

TEST_CASE("against: weights that the quantised model lacks are still missing") {
  const QuantisedForm& form = quantised_forms()[0];
  NamedTensors tensors = four_layers_of(form.parts);
  tensors.erase("model.norm.weight");
  const CheckReport report =
      checked_with(opened_with(tensors, form.settings), opened_with(four_layers_of(kPlainParts)));
  CHECK(all_causes(report, "missing-key").find("model.norm.weight") != std::string::npos);
  CHECK(all_causes(report, "missing-key").find("up_proj") == std::string::npos);
}

TEST_CASE("against: a weight that only one of two quantised models quantises is reported") {
  const QuantisedForm& form = quantised_forms()[0];
  NamedTensors partly = four_layers_of(form.parts);
  partly.erase("model.layers.3.up_proj.weight_scale_inv");
  partly["model.layers.3.up_proj.weight"] = kPlainParts.at(".weight");
  const CheckReport report = checked_with(opened_with(partly, form.settings),
                                          opened_with(four_layers_of(form.parts), form.settings));
  CHECK(not_compared(report) == nullptr);
  CHECK(all_causes(report, "missing-key").find("layers.3") != std::string::npos);
}
