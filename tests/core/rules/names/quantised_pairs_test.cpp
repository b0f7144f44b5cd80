// Quantised weights and the tensors that belong to them, scheme by scheme.
#include "core/rules/names/named_tensors.h"

using namespace shw;
using namespace shw::test;

namespace {

// Two int64, as weight_shape of compressed-tensors has them.
std::string two_extents(char rows, char columns) {
  std::string bytes(16, '\0');
  bytes[0] = rows;
  bytes[8] = columns;
  return bytes;
}

const std::string kNfState = R"({"quant_type": "nf4", "blocksize": 64, "shape": [10, 8]})";

struct Quantised {
  const char* scheme;
  const char* config;
  NamedTensors beside;  // of one module, names behind "model.layers.N.up_proj"
};

const std::vector<Quantised>& quantised_modules() {
  static const std::vector<Quantised> kModules = {
      {"FP8 blocks",
       R"({"quant_method": "fp8", "weight_block_size": [4, 4]})",
       {{".weight", {"F8_E4M3", {10, 8}}}, {".weight_scale_inv", {"F32", {3, 2}}}}},
      {"FP8 channels",
       R"({"quant_method": "compressed-tensors", "format": "float-quantized"})",
       {{".weight", {"F8_E4M3", {10, 8}}}, {".weight_scale", {"BF16", {10, 1}}}}},
      {"packed",
       R"({"quant_method": "compressed-tensors", "format": "pack-quantized"})",
       {{".weight_packed", {"I32", {10, 1}}},
        {".weight_scale", {"BF16", {10, 2}}},
        {".weight_shape", {"I64", {2}}}}},
      {"GPTQ",
       R"({"quant_method": "gptq", "bits": 4, "group_size": 4})",
       {{".qweight", {"I32", {1, 16}}},
        {".qzeros", {"I32", {2, 2}}},
        {".scales", {"F16", {2, 16}}},
        {".g_idx", {"I32", {8}, 0}}}},
      {"AWQ",
       R"({"quant_method": "awq", "bits": 4, "group_size": 4})",
       {{".qweight", {"I32", {8, 2}}},
        {".qzeros", {"I32", {2, 2}}},
        {".scales", {"F16", {2, 16}}}}},
      {"NF4",
       R"({"quant_method": "bitsandbytes", "load_in_4bit": true})",
       {{".weight", {"U8", {40, 1}}},
        {".weight.absmax", {"F32", {2}}},
        {".weight.quant_map", {"F32", {16}}},
        {".weight.quant_state.bitsandbytes__nf4",
         {"U8", {static_cast<std::int64_t>(kNfState.size())}}}}},
      {"int8",
       R"({"quant_method": "bitsandbytes", "load_in_8bit": true})",
       {{".weight", {"I8", {10, 8}}}, {".SCB", {"F32", {10}}}, {".weight_format", {"U8", {}}}}},
      {"MXFP4",
       R"({"quant_method": "mxfp4"})",
       {{"_blocks", {"U8", {2, 8, 3, 16}}}, {"_scales", {"U8", {2, 8, 3}}}}},
      {"MXFP8",
       R"({"quant_method": "compressed-tensors", "format": "mxfp8-quantized"})",
       {{".weight", {"F8_E4M3", {10, 80}}}, {".weight_scale", {"U8", {10, 3}}}}},
      {"packed MXFP4",
       R"({"quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized"})",
       {{".weight_packed", {"U8", {10, 32}}}, {".weight_scale", {"U8", {10, 2}}}}},
      {"FP8 stored as uint8",
       R"({"quant_method": "modelopt"})",
       {{".weight", {"U8", {10, 64}}}, {".weight_scale", {"F32", {10, 1}}}}},
      {"quanto",
       R"({"quant_method": "quanto"})",
       {{".weight._data", {"I8", {10, 8}}}, {".weight._scale", {"F32", {10, 1}}}}},
      {"NVFP4",
       R"({"quant_method": "modelopt"})",
       {{".weight", {"U8", {8, 8}}},
        {".weight_scale", {"F8_E4M3", {8, 1}}},
        {".weight_scale_2", {"F32", {}}}}},
  };
  return kModules;
}

NamedTensors four_layers(const Quantised& module) {
  NamedTensors out;
  for (int i = 0; i < 4; ++i)
    for (const auto& [name, tensor] : module.beside)
      out[fmt::format("model.layers.{}.up_proj{}", i, name)] = tensor;
  out["model.norm.weight"] = {"BF16", {8}};
  return out;
}

// Writes the bytes into the file over those of the tensors.
void store_bytes(Bytes& file, const NamedTensors& tensors, char columns) {
  std::size_t at = 8 + static_cast<std::size_t>(file[0]) + 256 * static_cast<std::size_t>(file[1]);
  for (const auto& [name, tensor] : tensors) {
    std::string bytes = elements_of(tensor);
    if (name.find("quant_state") != name.npos && bytes.size() == kNfState.size()) bytes = kNfState;
    if (name.ends_with("weight_shape") && bytes.size() == 16) bytes = two_extents(10, columns);
    for (char c : bytes) file[at++] = static_cast<std::byte>(c);
  }
  REQUIRE(at == file.size());
}

CheckReport checked_stored(const NamedTensors& tensors, const std::string& config, Depth depth,
                           char columns = 8) {
  Bytes file = tensor_file(tensors);
  store_bytes(file, tensors, columns);
  std::vector<std::pair<std::string, Bytes>> files{{"model.safetensors", std::move(file)}};
  if (!config.empty()) files.emplace_back("config.json", bytes_from(config));
  auto opened = open_checkpoint(memory_directory("made", std::move(files)));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CheckOptions options;
  options.depth = depth;
  return looked(**opened, options);
}

CheckReport checked_quantised(const NamedTensors& tensors, const Quantised& module,
                              Depth depth = Depth::kHeaders, char columns = 8) {
  return checked_stored(
      tensors,
      fmt::format(R"({{"model_type": "of_nobody", "quantization_config": {}}})", module.config),
      depth, columns);
}

}  // namespace

TEST_CASE("quantised pairs: whole modules of every scheme raise nothing") {
  for (const Quantised& module : quantised_modules()) {
    INFO(std::string(module.scheme));
    CHECK(all_causes(checked_quantised(four_layers(module), module, Depth::kData),
                     "quantised-pairs") == "");
    CHECK(all_causes(checked_stored(four_layers(module), "", Depth::kHeaders), "quantised-pairs") ==
          "");
  }
}

TEST_CASE("quantised pairs: each companion that one weight lacks is reported") {
  for (const Quantised& module : quantised_modules()) {
    for (const auto& [name, tensor] : module.beside) {
      INFO(std::string(module.scheme) << " " << name);
      NamedTensors tensors = four_layers(module);
      tensors.erase("model.layers.2.up_proj" + name);
      CHECK(find(checked_quantised(tensors, module), "quantised-pairs") != nullptr);
      CHECK(find(checked_tensors(tensors), "quantised-pairs") != nullptr);
    }
  }
}

TEST_CASE("quantised pairs: all that one weight lacks is one finding") {
  for (const Quantised& module : quantised_modules()) {
    if (std::string(module.scheme) != "NF4") continue;
    NamedTensors tensors = four_layers(module);
    std::erase_if(tensors, [](const auto& one) {
      return one.first.starts_with("model.layers.2.up_proj.weight.");
    });
    const std::string causes = all_causes(checked_quantised(tensors, module), "quantised-pairs");
    CHECK(causes.find("no `weight.absmax`, no `weight.quant_map`, no ") != std::string::npos);
    CHECK(causes.find("1 of 4 ") == causes.rfind("1 of 4 "));
  }
}

TEST_CASE("quantised pairs: scales under two endings are counted") {
  const Quantised& module = quantised_modules()[0];
  NamedTensors tensors = four_layers(module);
  for (int i = 0; i < 3; ++i) {
    auto moved = tensors.extract(fmt::format("model.layers.{}.up_proj.weight_scale_inv", i));
    moved.key() = fmt::format("model.layers.{}.up_proj.weight_scale", i);
    tensors.insert(std::move(moved));
  }
  const CheckReport report = checked_quantised(tensors, module);
  const Finding* finding = find(report, "quantised-pairs");
  REQUIRE(finding != nullptr);
  CHECK(finding->subjects.size() == 3);
  CHECK(finding->cause.find("asks for `weight_scale_inv`") != std::string::npos);
}

TEST_CASE("quantised pairs: a scale of other blocks is reported with both shapes") {
  const Quantised& module = quantised_modules()[0];
  NamedTensors tensors = four_layers(module);
  tensors["model.layers.1.up_proj.weight_scale_inv"].shape = {2, 2};
  CHECK(all_causes(checked_quantised(tensors, module), "quantised-pairs").find("[3, 2]") !=
        std::string::npos);
}

TEST_CASE("quantised pairs: scales of MXFP8 and NVFP4 are one for 32 and for 16 columns") {
  const std::string scale = "model.layers.1.up_proj.weight_scale";
  for (const Quantised& module : quantised_modules()) {
    const std::string scheme = module.scheme;
    if (scheme != "MXFP8" && scheme != "packed MXFP4" && scheme != "NVFP4") continue;
    INFO(scheme);
    NamedTensors tensors = four_layers(module);
    tensors[scale].shape.back() += 1;
    const CheckReport report = checked_quantised(tensors, module);
    const Finding* finding = find(report, "quantised-pairs");
    REQUIRE(finding != nullptr);
    CHECK(finding->subjects == std::vector<std::string>{scale});
    // Rows to 128 and groups to 4, as kernels ask for them.
    tensors[scale].shape = {128, 4};
    CHECK(all_causes(checked_quantised(tensors, module), "quantised-pairs") == "");
  }
}

TEST_CASE("quantised pairs: uint8 with a scale of FP8 is not NVFP4") {
  const Extents per_tensor, per_channel{256, 1}, per_block{2, 2};
  for (const auto& shape : {per_tensor, per_channel, per_block}) {
    NamedTensors tensors;
    for (int i = 0; i < 4; ++i) {
      const std::string module = fmt::format("model.layers.{}.up_proj", i);
      tensors[module + ".weight"] = {"U8", {256, 256}};
      tensors[module + ".weight_scale"] = {"F32", shape};
    }
    CHECK(all_causes(checked_quantised(tensors, {"", R"({"quant_method": "modelopt"})", {}}),
                     "quantised-pairs") == "");
  }
}

TEST_CASE("quantised pairs: a weight that is a float again is reported") {
  const Quantised& module = quantised_modules()[0];
  NamedTensors tensors = four_layers(module);
  tensors["model.layers.1.up_proj.weight"].dtype = "BF16";
  CHECK(all_causes(checked_quantised(tensors, module), "quantised-pairs")
            .find("not quantised any more") != std::string::npos);
}

TEST_CASE("quantised pairs: a scale of zeros is reported with data") {
  const Quantised& module = quantised_modules()[0];
  NamedTensors tensors = four_layers(module);
  tensors["model.layers.1.up_proj.weight_scale_inv"].value = 0;
  CHECK(find(checked_quantised(tensors, module), "quantised-pairs") == nullptr);
  CHECK(find(checked_quantised(tensors, module, Depth::kData), "quantised-pairs") != nullptr);
}

TEST_CASE("quantised pairs: a module that the config leaves out is reported") {
  Quantised module = quantised_modules()[0];
  module.config = R"({"quant_method": "fp8", "weight_block_size": [4, 4],
                      "modules_to_not_convert": ["model.layers.3.up_proj"]})";
  CHECK(all_causes(checked_quantised(four_layers(module), module), "quantised-pairs")
            .find("lists it as not quantised") != std::string::npos);
}

TEST_CASE("quantised pairs: weights that are only stored in 8 bits raise nothing") {
  NamedTensors tensors;
  for (int i = 0; i < 4; ++i)
    tensors[fmt::format("model.layers.{}.up_proj.weight", i)] = {"F8_E4M3", {10, 8}};
  CHECK(rules_above_info(checked_tensors(tensors)).empty());
}

TEST_CASE("quantised pairs: FP8 without blocks has its scale under either name") {
  Quantised module = quantised_modules()[0];
  module.config = R"({"quant_method": "fp8", "activation_scheme": "dynamic"})";
  for (const char* ending : {".weight_scale", ".weight_scale_inv"}) {
    CAPTURE(ending);
    module.beside = {{".weight", {"F8_E4M3", {10, 8}}}, {ending, {"F32", {}}}};
    CHECK(find(checked_quantised(four_layers(module), module), "quantised-pairs") == nullptr);
  }
}

TEST_CASE("quantised pairs: a weight left as a float is reported unless the config may exempt it") {
  Quantised module = quantised_modules()[1];
  NamedTensors tensors = four_layers(module);
  tensors["model.layers.1.up_proj.weight"].dtype = "BF16";
  tensors.erase("model.layers.1.up_proj.weight_scale");
  auto subjects = [&](const char* ignored) {
    const std::string config = fmt::format(
        R"({{"quant_method": "compressed-tensors", "format": "float-quantized", "ignore": {}}})",
        ignored);
    module.config = config.c_str();
    const CheckReport report = checked_quantised(tensors, module);
    const Finding* finding = find(report, "quantised-pairs");
    return finding == nullptr ? std::vector<std::string>() : finding->subjects;
  };
  CHECK(subjects(R"(["lm_head"])") == std::vector<std::string>{"model.layers.1.up_proj.weight"});
  for (const char* exempt :
       {R"(["model.layers.1.up_proj"])", R"(["re:.*layers.1.*"])", R"(["model.layers.1"])",
        R"(["model.layers.1.gate_up_proj"])", R"(["*layers.1*"])"}) {
    CAPTURE(exempt);
    CHECK(subjects(exempt).empty());
  }
  // A layer behind the others is for multi-token prediction.
  tensors["model.layers.1.up_proj.weight"].dtype = "F8_E4M3";
  tensors["model.layers.1.up_proj.weight_scale"] = {"BF16", {10, 1}};
  tensors["model.layers.4.up_proj.weight"] = {"BF16", {10, 8}};
  CHECK(subjects(R"(["lm_head"])").empty());
}

TEST_CASE("quantised pairs: settings in a file next to config.json count as those in it") {
  const Quantised& module = quantised_modules()[1];
  NamedTensors tensors = four_layers(module);
  tensors["model.layers.1.up_proj.weight"].dtype = "BF16";
  tensors.erase("model.layers.1.up_proj.weight_scale");
  auto is_reported = [&](const std::string& quantisation) {
    const CheckReport report = checked_tensors(
        tensors,
        {{"config.json", R"({"model_type": "of_nobody"})"},
         {"hf_quant_config.json",
          R"({"producer": {"name": "modelopt"}, "quantization": )" + quantisation + "}"}},
        Depth::kHeaders);
    return find(report, "quantised-pairs") != nullptr;
  };
  CHECK(is_reported(R"({"quant_algo": "FP8", "exclude_modules": ["lm_head"]})"));
  CHECK_FALSE(is_reported(R"({"quant_algo": "FP8", "exclude_modules": ["model.layers.1*"]})"));
  CHECK_FALSE(
      is_reported(R"({"quant_algo": "FP8", "exclude_modules": ["model.layers.1.up_proj"]})"));
  CHECK_FALSE(is_reported(R"({"quant_algo": "MIXED_PRECISION", "quantized_layers": {}})"));
  CHECK_FALSE(is_reported(R"({"quant_algo": null, "kv_cache_quant_algo": "FP8"})"));
}

TEST_CASE("quantised pairs: bits of bitsandbytes that are not those of the config are reported") {
  for (const Quantised& module : quantised_modules()) {
    const std::string scheme = module.scheme;
    if (scheme != "NF4" && scheme != "int8") continue;
    Quantised other = module;
    other.config = scheme == "NF4" ? R"({"quant_method": "bitsandbytes", "load_in_8bit": true})"
                                   : R"({"quant_method": "bitsandbytes", "load_in_4bit": true})";
    const CheckReport report = checked_quantised(four_layers(other), other);
    const Finding* finding = find(report, "quantised-pairs");
    REQUIRE(finding != nullptr);
    CHECK(finding->cause.find(scheme == "NF4" ? "in 4 bits" : "in 8 bits") != std::string::npos);
    CHECK(finding->subjects.size() == 4);
  }
}

TEST_CASE("quantised pairs: packed weights of other bits or groups than the config are reported") {
  const auto reports = [](const char* bits, const char* group) {
    const std::string config = fmt::format(
        R"({{"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups":
            {{"group_0": {{"targets": ["Linear"], "weights":
              {{"num_bits": {}, "group_size": {}, "strategy": "group"}}}}}}}})",
        bits, group);
    // 64 columns of 4 bits, a scale for each 16.
    const Quantised module{"packed",
                           config.c_str(),
                           {{".weight_packed", {"I32", {10, 8}}},
                            {".weight_scale", {"BF16", {10, 4}}},
                            {".weight_shape", {"I64", {2}}}}};
    return find(checked_quantised(four_layers(module), module, Depth::kHeaders, 64),
                "quantised-pairs") != nullptr;
  };
  CHECK_FALSE(reports("4", "16"));
  CHECK_FALSE(reports("4", "null"));
  CHECK(reports("8", "16"));
  CHECK(reports("4", "32"));
}

TEST_CASE("quantised pairs: packed weights next to a config that does not say so are a warning") {
  const auto announced = [](const char* dtype, const char* scale, const std::string& more) {
    NamedTensors tensors = llama_tensors(same_name);
    tensors["model.layers.0.mlp.up_proj.weight"] = {dtype, {40, 1}};
    tensors[scale] = {"F32", {2, 1}};
    const CheckReport report =
        checked_tensors(tensors, {{"config.json", "{" + more + kLlamaConfig.substr(1)}});
    return find(report, "config-announces") != nullptr;
  };
  constexpr const char* kAbsmax = "model.layers.0.mlp.up_proj.weight.absmax";
  CHECK(announced("U8", kAbsmax, ""));
  CHECK(announced("I8", "model.layers.0.mlp.up_proj.SCB", ""));
  CHECK(announced("U32", "model.layers.0.mlp.up_proj.scales", ""));
  CHECK(announced("I8", "model.layers.0.mlp.up_proj.other", ""));
  CHECK_FALSE(announced("U32", "model.layers.0.mlp.up_proj.other", ""));
  CHECK_FALSE(announced(
      "U8", kAbsmax,
      R"("quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": true}, )"));
}

TEST_CASE("pair asymmetry: the text of bitsandbytes next to a weight is not a half of a pair") {
  const auto is_told = [](const std::string& ending) {
    const std::string layer = "model.layers.0.mlp.";
    const CheckReport report = checked_tensors({{layer + "gate_proj.weight" + ending, {"U8", {84}}},
                                                {layer + "up_proj.weight" + ending, {"U8", {85}}}});
    return find(report, "pair-asymmetry") != nullptr;
  };
  CHECK(is_told(""));
  CHECK_FALSE(is_told(".quant_state.bitsandbytes__nf4"));
}

TEST_CASE("quantised pairs: MLX weights with scales of floats need their biases") {
  const auto is_told = [](const std::string& scale_dtype) {
    NamedTensors tensors;
    for (int layer = 0; layer < 4; ++layer) {
      const std::string module = fmt::format("model.layers.{}.mlp.up_proj.", layer);
      tensors[module + "weight"] = {"U32", {8, 8}};
      tensors[module + "scales"] = {scale_dtype, {8, 2}};
      if (layer % 2 == 0) tensors[module + "biases"] = {"F16", {8, 2}};
    }
    return find(checked_tensors(tensors), "quantised-pairs") != nullptr;
  };
  CHECK(is_told("F16"));
  CHECK_FALSE(is_told("U8"));  // MXFP4 has exponents alone
}

TEST_CASE("quantised pairs: without a config a scale of MLX with other groups is reported") {
  const auto causes = [](std::int64_t groups) {
    NamedTensors tensors;
    for (int layer = 0; layer < 6; ++layer) {
      const std::string module = fmt::format("model.layers.{}.mlp.up_proj.", layer);
      tensors[module + "weight"] = {"U32", {8, 16}};
      for (const char* beside : {"scales", "biases"})
        tensors[module + beside] = {"F16", {8, layer == 3 ? groups : 2}};
    }
    return all_causes(checked_tensors(tensors), "quantised-pairs");
  };
  CHECK(causes(2) == "");
  CHECK(causes(4).find("model.layers.3.mlp.up_proj.scales [8, 4]") != std::string::npos);
}

TEST_CASE("quantised pairs: extents near the limit of a number do not overflow") {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  for (const Extents& shape : {Extents{kMost, 0}, Extents{0, kMost}, Extents{kMost / 4, 0, 32, 1},
                               Extents{0, kMost / 4, 32, 4}}) {
    for (const char* dtype : {"F8_E4M3", "U8", "I8", "I32", "U32"}) {
      for (const Extents& scale : {Extents{1, 8}, Extents{8}, Extents{}}) {
        for (const char* name : {"_qdata", ".qdata", ".weight", ".weight_packed", ".qweight"}) {
          NamedTensors tensors;
          tensors["a._weight" + std::string(name)] = {dtype, shape};
          tensors["a._weight_scale"] = {"U8", scale};
          tensors["a._weight.scale"] = {"U8", scale};
          tensors["a._weight.weight_scale"] = {"F8_E4M3", scale};
          tensors["a._weight.scales"] = {"F16", scale};
          tensors["a._weight_scale_and_zero"] = {"BF16", scale};
          (void)checked_tensors(tensors);
        }
      }
    }
  }
}

TEST_CASE("quantised pairs: a group number beyond the scales is reported") {
  Quantised module = quantised_modules()[3];
  REQUIRE(std::string(module.scheme) == "GPTQ");
  NamedTensors tensors = four_layers(module);
  CHECK(find(checked_quantised(tensors, module), "quantised-pairs") == nullptr);
  tensors["model.layers.2.up_proj.g_idx"].value = 1;  // 0x01010101 in each element
  const CheckReport report = checked_quantised(tensors, module);
  const Finding* finding = find(report, "quantised-pairs");
  REQUIRE(finding != nullptr);
  CHECK(finding->subjects == std::vector<std::string>{"model.layers.2.up_proj.g_idx"});
  CHECK(finding->cause.find("group 16843009") != std::string::npos);
  CHECK(finding->cause.find("has 2 rows") != std::string::npos);
}

TEST_CASE(
    "quantised pairs: companions that no weight has are missing if the config asks for them") {
  struct Asked {
    const char* scheme;
    const char* config;
    const char* ending;
    NamedTensor companion;
    const char* without;  // a config that does not ask for it
  };
  const std::vector<Asked> cases = {
      {"FP8 channels",
       R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"targets": ["Linear"],
           "weights": {"num_bits": 8}, "input_activations": {"dynamic": false}}}})",
       ".input_scale",
       {"BF16", {1}},
       R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"targets": ["Linear"],
           "weights": {"num_bits": 8}, "input_activations": {"dynamic": true}}}})"},
      {"packed",
       R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"targets": ["Linear"],
           "weights": {"symmetric": false}, "input_activations": null}}})",
       ".weight_zero_point",
       {"I32", {2, 2}},
       R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"targets": ["Linear"],
           "weights": {"symmetric": true}, "input_activations": null}}})"}};
  for (const Asked& one : cases) {
    CAPTURE(one.ending);
    Quantised module = *std::find_if(
        quantised_modules().begin(), quantised_modules().end(),
        [&](const Quantised& each) { return std::string(each.scheme) == one.scheme; });
    module.config = one.without;
    CHECK(find(checked_quantised(four_layers(module), module), "quantised-pairs") == nullptr);
    module.config = one.config;
    const std::string causes =
        all_causes(checked_quantised(four_layers(module), module), "quantised-pairs");
    CHECK(causes.find(std::string("no `") + (one.ending + 1)) != std::string::npos);
    CHECK(causes.find("config.json says") != std::string::npos);
    module.beside[one.ending] = one.companion;
    CHECK(find(checked_quantised(four_layers(module), module), "quantised-pairs") == nullptr);
  }
}

TEST_CASE("quantised pairs: a quantiser's own settings next to packed weights are reported") {
  for (const Quantised& module : quantised_modules()) {
    if (std::string(module.scheme) != "NVFP4") continue;
    NamedTensors tensors = four_layers(module);
    tensors["model.layers.1.up_proj.weight_quantizer._double_scale"] = {"F32", {}};
    const CheckReport report = checked_quantised(tensors, module);
    const Finding* finding = find(report, "quantised-pairs");
    REQUIRE(finding != nullptr);
    CHECK(finding->subjects.size() == 1);
    CHECK(finding->cause.find("_double_scale") != std::string::npos);
  }
  // Weights that are not packed are saved with these on purpose, to quantise them later.
  NamedTensors plain = llama_tensors(same_name);
  plain["model.layers.1.mlp.up_proj.weight_quantizer._amax"] = {"F32", {}};
  CHECK(find(checked_tensors(plain), "quantised-pairs") == nullptr);
}
