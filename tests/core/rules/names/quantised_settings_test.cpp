// A quantisation config whose bits or group size are not those of the weights.
#include "core/rules/names/named_tensors.h"

using namespace shw;
using namespace shw::test;

namespace {

// GPTQ weights of 64 inputs and 16 outputs in 4 bits and groups of 32.
void add_gptq(NamedTensors& tensors, const std::string& module, std::int64_t groups = 2) {
  tensors[module + ".qweight"] = {"I32", {8, 16}};
  tensors[module + ".qzeros"] = {"I32", {groups, 2}};
  tensors[module + ".scales"] = {"F16", {groups, 16}};
  tensors[module + ".g_idx"] = {"I32", {64}, 0};
}

NamedTensors four_modules() {
  NamedTensors out;
  for (int i = 0; i < 4; ++i) add_gptq(out, fmt::format("model.layers.{}.up_proj", i));
  return out;
}

std::vector<std::string> causes_with(const NamedTensors& tensors, const char* settings) {
  const CheckReport report =
      checked_tensors(tensors, {{"config.json", fmt::format(R"({{"model_type": "of_nobody",
                  "quantization_config": {{"quant_method": "gptq", {}}}}})",
                                                            settings)}});
  std::vector<std::string> causes;
  for (const Finding& finding : report.findings)
    if (finding.rule == "quantised-pairs") causes.push_back(finding.cause);
  return causes;
}

bool says(const std::vector<std::string>& causes, const std::string& words) {
  return causes.size() == 1 && causes.front().find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("quantised pairs: settings that no weight has are one finding with the right ones") {
  const NamedTensors tensors = four_modules();
  CHECK(causes_with(tensors, R"("bits": 4, "group_size": 32)").empty());
  CHECK(says(causes_with(tensors, R"("bits": 4, "group_size": 128)"), "Set group_size 32"));
  CHECK(says(causes_with(tensors, R"("bits": 8, "group_size": 32)"), "Set bits 4"));
  CHECK(says(causes_with(tensors, R"("bits": 8, "group_size": 128)"),
             "Set bits 4 and group_size 32"));
}

TEST_CASE("quantised pairs: settings that some weight has are not called wrong") {
  NamedTensors tensors = four_modules();
  add_gptq(tensors, "model.layers.3.up_proj", 1);
  const auto causes = causes_with(tensors, R"("bits": 4, "group_size": 64)");
  REQUIRE_FALSE(causes.empty());
  for (const std::string& cause : causes) CHECK(cause.find("Set ") == std::string::npos);
}

TEST_CASE("quantised pairs: settings are not guessed where several fit") {
  NamedTensors tensors;
  tensors["model.layers.0.up_proj.qweight"] = {"I32", {8, 16}};
  tensors["model.layers.0.up_proj.scales"] = {"F16", {1, 16}};
  tensors["model.layers.0.up_proj.qzeros"] = {"I32", {1, 2}};
  tensors["model.layers.0.up_proj.g_idx"] = {"I32", {64}, 0};
  for (const std::string& cause : causes_with(tensors, R"("bits": 4, "group_size": 32)"))
    CHECK(cause.find("Set ") == std::string::npos);
}
