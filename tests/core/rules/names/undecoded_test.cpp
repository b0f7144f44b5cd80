// Weights of quantisers whose forms are not decoded: the verdict names them, and no rule takes
// their parts for damage. Names, dtypes and shapes as transformers' integrations register them.
#include "core/rules/undecoded.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/rules/names/named_tensors.h"

using namespace shw;
using namespace shw::test;

namespace {

struct OtherQuantiser {
  const char* method;
  NamedTensors parts;  // of a projection of 64 inputs to 128 outputs
};

const std::vector<OtherQuantiser>& other_quantisers() {
  static const std::vector<OtherQuantiser> kOthers = {
      {"aqlm",
       {{".codes", {"I8", {128, 8, 1}}},
        {".codebooks", {"F16", {1, 256, 1, 8}}},
        {".scales", {"F16", {128, 1, 1, 1}}}}},
      {"vptq",
       {{".indices", {"I32", {1, 8, 64}}},
        {".centroids.weight", {"F16", {1, 2048}}},
        {".weight_scale", {"F16", {64}}},
        {".weight_bias", {"F16", {64}}},
        {".perm", {"I16", {64}}}}},
      {"eetq", {{".weight", {"I8", {64, 128}}}, {".weight_scales", {"F16", {128}}}}},
      {"fp_quant",
       {{".qweight", {"U8", {128, 32}}},
        {".scales", {"U8", {128, 2}}},
        {".weight_global_scale", {"F32", {1}}},
        {".act_global_scale", {"F32", {1}}},
        {".forward_hadamard_matrix", {"BF16", {32, 32}}},
        {".backward_hadamard_matrix", {"BF16", {32, 32}}}}},
      {"higgs",
       {{".weight", {"I16", {128, 16}}},
        {".scales", {"F16", {128, 1}}},
        {".tables", {"F16", {256, 2}}},
        {".tables2", {"F16", {256, 256, 2}}}}},
      {"spqr",
       {{".dense_weights", {"I64", {2, 4, 16}}},
        {".row_offsets", {"I32", {129}}},
        {".col_vals", {"I32", {40}}}}},
      {"exl2",
       {{".q_weight", {"I32", {16, 128}}},
        {".q_scale", {"I32", {2, 16}}},
        {".q_scale_max", {"F16", {2}}},
        {".q_groups", {"I16", {4}}},
        {".q_invperm", {"I16", {64}}}}},
      {"exl3",
       {{".trellis", {"I16", {4, 8, 64}}}, {".suh", {"F16", {64}}}, {".svh", {"F16", {128}}}}},
      {"qqq",
       {{".B", {"I32", {4, 256}}},
        {".s_channel", {"F32", {1, 128}}},
        {".s_group", {"F16", {1, 128}}}}},
  };
  return kOthers;
}

CheckReport checked_other(const OtherQuantiser& other, Depth depth) {
  NamedTensors tensors;
  for (int i = 0; i < 4; ++i)
    for (const auto& [ending, part] : other.parts)
      tensors[fmt::format("model.layers.{}.mlp.up_proj{}", i, ending)] = part;
  tensors["model.norm.weight"] = {"BF16", {64}};
  return checked_tensors(
      tensors,
      {{"config.json", fmt::format(R"({{"model_type": "of_nobody", "quantization_config":
                        {{"quant_method": "{}", "bits": 2, "group_size": 32}}}})",
                                   other.method)}},
      depth);
}

std::string names_of_unjudged(const CheckReport& report) {
  return to_text(report.unjudged);
}

}  // namespace

TEST_CASE("undecoded: the verdict names the quantiser, and no part of its weights is a finding") {
  for (const OtherQuantiser& other : other_quantisers()) {
    for (const Depth depth : {Depth::kMetadata, Depth::kHeaders, Depth::kData}) {
      INFO(std::string(other.method));
      const CheckReport report = checked_other(other, depth);
      for (const Finding& finding : report.findings) {
        CAPTURE(finding.cause);
        CHECK(finding.severity == Severity::kInfo);
      }
      CHECK(names_of_unjudged(report).find(fmt::format("\"{}\"", other.method)) !=
            std::string::npos);
    }
  }
}

TEST_CASE("undecoded: weights that are decoded, and plain ones, are not named") {
  NamedTensors tensors;
  for (int i = 0; i < 4; ++i) {
    const std::string module = fmt::format("model.layers.{}.up_proj", i);
    tensors[module + ".weight"] = {"F8_E4M3", {64, 64}};
    tensors[module + ".weight_scale"] = {"F32", {64, 1}};
  }
  const std::string fp8 = R"({"quantization_config": {"quant_method": "fp8"}})";
  CHECK(names_of_unjudged(checked_tensors(tensors, {{"config.json", fp8}})).find("quantised") ==
        std::string::npos);
  // Loaded in 8 bits, and saved as it was.
  for (auto& [name, tensor] : tensors) tensor.dtype = "BF16";
  const std::string bnb =
      R"({"quantization_config": {"quant_method": "bitsandbytes", "load_in_8bit": true}})";
  CHECK(names_of_unjudged(checked_tensors(tensors, {{"config.json", bnb}})).find("quantised") ==
        std::string::npos);
}

TEST_CASE("undecoded: weights of a known quantiser in a form that is not decoded are named") {
  NamedTensors tensors;
  for (int i = 0; i < 4; ++i) {
    const std::string module = fmt::format("model.layers.{}.up_proj", i);
    tensors[module + ".qweight"] = {"I16", {16, 64}};  // AutoAWQ's order for its fast kernel
    tensors[module + ".qzeros"] = {"F16", {1, 64}};
    tensors[module + ".scales"] = {"F16", {1, 64}};
  }
  const std::string config = R"({"model_type": "of_nobody", "quantization_config":
      {"quant_method": "awq", "bits": 4, "group_size": 64, "version": "gemv_fast"}})";
  const CheckReport report = checked_tensors(tensors, {{"config.json", config}});
  CHECK(rules_above_info(report).empty());
  CHECK(names_of_unjudged(report).find("4 quantised weights") != std::string::npos);
}
