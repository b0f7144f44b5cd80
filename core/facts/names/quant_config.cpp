#include "core/facts/names/quant_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/base/letter_case.h"
#include "core/base/parse_text.h"
#include "core/facts/reference/model_config.h"
#include "core/formats/common/python_json.h"

namespace shw {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMaxQuantConfig = std::uint64_t{4} << 20;
constexpr std::int64_t kLargestGroup = std::int64_t{1} << 32;

const Json* json_object_member(const Json& object, const char* key) {
  auto found = object.find(key);
  return found != object.end() && found->is_object() ? &*found : nullptr;
}

std::optional<std::int64_t> quant_size(const Json& object, const char* key) {
  auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return std::nullopt;
  if (found->is_number_unsigned() && found->get<std::uint64_t>() > std::uint64_t{1} << 32)
    return std::nullopt;
  const auto size = found->get<std::int64_t>();
  if (size == -1) return size;
  return size > 0 && size <= kLargestGroup ? std::optional(size) : std::nullopt;
}

// Adds names of modules that are not quantised.
void add_names_in(const Json& object, const char* key, QuantConfig& config) {
  auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return;
  for (const Json& one : *found) {
    if (!one.is_string()) continue;
    const auto name = one.get<std::string>();
    const bool is_pattern =
        name.starts_with("re:") || name.find_first_of("*?[(\\^$") != std::string::npos;
    config.has_patterns = config.has_patterns || is_pattern;
    if (is_pattern && config.patterns.size() < QuantConfig::kMaxPatterns)
      config.patterns.push_back(name);
    if (!is_pattern && !name.empty()) config.unconverted.push_back(name);
  }
}

// True if compressed-tensors quantises only some modules: the default group targets all of
// "Linear".
bool has_narrow_targets(const Json& object) {
  const Json* groups = json_object_member(object, "config_groups");
  if (groups == nullptr) return false;
  for (const auto& [name, group] : groups->items()) {
    if (!group.is_object() || group.value("targets", Json()) != Json::array({"Linear"}))
      return true;
  }
  return false;
}

bool is_true(const Json& object, const char* key) {
  auto found = object.find(key);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

void read_weight_bits(const Json& object, QuantConfig& config) {
  if (config.method == "bitsandbytes") {
    const bool in8 = is_true(object, "load_in_8bit"), in4 = is_true(object, "load_in_4bit");
    if (in8 != in4) config.weight_bits = in8 ? 8 : 4;
    return;
  }
  if (config.method == "hqq") {
    const Json* all = json_object_member(object, "quant_config");
    const Json* weights =
        all != nullptr ? json_object_member(*all, "weight_quant_params") : nullptr;
    if (weights == nullptr) return;
    config.weight_bits = quant_size(*weights, "nbits");
    config.weight_group = quant_size(*weights, "group_size");
    return;
  }
  if (config.method == "bitnet") {
    const Json said = object.value("linear_class", Json("bitlinear"));  // transformers' default
    config.divides_by_scale = said == "bitlinear";
    return;
  }
  const Json* groups = json_object_member(object, "config_groups");
  if (groups == nullptr || groups->size() != 1) return;
  const Json& group = groups->front();
  const Json* weights = group.is_object() ? json_object_member(group, "weights") : nullptr;
  if (weights == nullptr) return;
  config.weight_bits = quant_size(*weights, "num_bits");
  config.weight_group = quant_size(*weights, "group_size");
}

// True if the groups of config_groups store weights with different bits or group sizes.
bool has_unequal_groups(const Json& object) {
  const Json* groups = json_object_member(object, "config_groups");
  if (groups == nullptr || groups->empty()) return false;
  const auto sizes_of = [](const Json& group) {
    const Json* weights = group.is_object() ? json_object_member(group, "weights") : nullptr;
    return weights == nullptr
               ? std::pair<std::optional<std::int64_t>, std::optional<std::int64_t>>()
               : std::pair(quant_size(*weights, "num_bits"), quant_size(*weights, "group_size"));
  };
  return std::any_of(groups->begin(), groups->end(), [&](const Json& group) {
    return sizes_of(group) != sizes_of(groups->front());
  });
}

// True if config_groups exists and `says` holds for the member `key` of every group (compressed-
// tensors, Model Optimizer).
template <class Says>
bool all_groups_agree(const Json& object, const char* key, Says says) {
  const Json* groups = json_object_member(object, "config_groups");
  return groups != nullptr && !groups->empty() &&
         std::all_of(groups->begin(), groups->end(), [&](const Json& group) {
           const Json* part = group.is_object() ? json_object_member(group, key) : nullptr;
           return part != nullptr && says(*part);
         });
}

void read_companions(const Json& object, QuantConfig& config) {
  config.has_static_inputs = object.value("activation_scheme", Json()) == "static" ||
                             all_groups_agree(object, "input_activations", [](const Json& inputs) {
                               const Json dynamic = inputs.value("dynamic", Json());
                               return dynamic == false || dynamic == "local";
                             });
  // actorder "weight" and "static" reorder columns only during quantisation and are not visible in
  // the file; "group" is.
  if (all_groups_agree(object, "weights", [](const Json& weights) {
        return weights.value("actorder", Json()) == "group";
      }))
    config.has_group_order = true;
  if (auto reorders = object.find("desc_act"); reorders != object.end() && reorders->is_boolean())
    config.has_group_order = reorders->get<bool>();
  for (const bool value : {true, false}) {
    if (all_groups_agree(object, "weights", [&](const Json& weights) {
          return weights.value("symmetric", Json()) == value;
        }))
      config.has_zero_points = !value;
    if (all_groups_agree(object, "weights", [&](const Json& weights) {
          return weights.value("type", Json()) == (value ? "float" : "int");
        }))
      config.has_float_weights = value;
  }
  config.has_scale_per_row =
      config.method == "fbgemm_fp8" || all_groups_agree(object, "weights", [](const Json& weights) {
        return weights.value("strategy", Json()) == "channel";
      });
  if (auto symmetric = object.find("sym"); symmetric != object.end() && symmetric->is_boolean())
    config.is_symmetric = symmetric->get<bool>();
}

// Adds what modules have of their own: {"model.layers.0.up_proj": {"bits": 8}, "lm_head": false}.
// AutoRound's names may be patterns, and say 16 bits of modules that are not quantised.
void read_modules(const Json& object, QuantConfig& config) {
  constexpr std::int64_t kNotQuantised = 16;
  for (const auto& [module, own] : object.items()) {
    if (own == false) config.unconverted.push_back(module);
    if (!own.is_object()) continue;
    const auto bits = quant_size(own, "bits");
    const bool is_literal = module.find_first_of("*?[(\\^$+|") == std::string::npos;
    if (bits && *bits >= kNotQuantised) {
      if (is_literal)
        config.unconverted.push_back(module);
      else
        config.has_patterns = true;
      continue;
    }
    const Json mode = own.value("mode", Json());
    if (is_literal)
      config.modules[module] = {mode.is_string() ? mode.get<std::string>() : "", bits,
                                quant_size(own, "group_size")};
    else
      config.has_overrides = true;
  }
}

// AutoRound stores weights in the packing of GPTQ, AWQ or compressed-tensors. Its own packing is
// GPTQ's with zero points that are not reduced by 1; groups are always in order.
void read_auto_round(const Json& object, QuantConfig& config) {
  const Json said = object.value("packing_format", Json());
  const std::string packing = said.is_string() ? said.get<std::string>() : "auto_round:auto_gptq";
  auto names = [&](std::string_view text) { return packing.find(text) != packing.npos; };
  if (auto modules = object.find("extra_config"); modules != object.end() && modules->is_object())
    read_modules(*modules, config);
  // "model.layers.1,model.layers.2": the other layers are plain.
  const Json blocks = object.value("block_name_to_quantize", Json());
  if (blocks.is_string() &&
      blocks.get_ref<const std::string&>().find_first_of("0123456789") != std::string::npos)
    config.has_patterns = true;
  config.has_group_order = false;
  config.has_bit_planes = false;
  if (names("llm_compressor"))
    config.method = "compressed-tensors";
  else if (names("fp8"))
    config.method = "fp8";
  else if (names("mlx"))
    config.method = "mlx";
  else if (names("awq"))
    config.method = "awq";
  else if (names("gptqmodel") || packing == "auto_round")
    config.method = "gptq", config.has_whole_zeros = true;
  else if (names("gptq") || packing == "auto")
    config.method = "gptq";
}

// Finds layouts that differ from the usual one. AutoAWQ's "exllama" is repacked at load time; its
// other versions are stored as loaded.
void read_layout(const Json& object, QuantConfig& config) {
  constexpr auto kLayouts =
      std::to_array<std::string_view>({"", "gptq", "gptq_v2", "gptq_p", "gemm", "exllama"});
  auto text = [&](const char* key) {
    const Json said = object.value(key, Json());
    return said.is_string() ? lowered(said.get<std::string>()) : std::string();
  };
  std::string layout;
  for (const char* key : {"checkpoint_format", "format", "version"})
    if (layout.empty()) layout = text(key);
  if (layout == "gptq_p") config.has_bit_planes = true;
  config.has_whole_zeros = layout == "gptq_v2" || layout == "gptq_p";
  config.has_other_layout = !is_one_of(layout, kLayouts);
  constexpr auto kWords = std::to_array<std::pair<std::string_view, std::int64_t>>(
      {{"int8", 8}, {"int16", 16}, {"int64", 64}});
  const std::string words = text("pack_dtype");
  for (const auto& [name, bits] : kWords)
    if (words == name) config.word_bits = bits;
}

QuantConfig quant_config_in(const Json& object) {
  QuantConfig config;
  if (auto method = object.find("quant_method"); method != object.end() && method->is_string())
    config.method = method->get<std::string>();
  read_layout(object, config);
  read_weight_bits(object, config);
  read_companions(object, config);
  config.bits = quant_size(object, "bits");
  if (!config.bits) config.bits = quant_size(object, "w_bit");
  config.group = quant_size(object, "group_size");
  if (!config.group) config.group = quant_size(object, "q_group_size");
  if (auto block = object.find("weight_block_size");
      block != object.end() && block->is_array() && block->size() == 2 &&
      (*block)[0].is_number_unsigned() && (*block)[1].is_number_unsigned()) {
    const auto rows = (*block)[0].get<std::uint64_t>(), columns = (*block)[1].get<std::uint64_t>();
    const bool is_sane = rows != 0 && columns != 0 && rows < (1U << 31) && columns < (1U << 31);
    if (is_sane)
      config.block = {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)};
  }
  for (const char* key : {"modules_to_not_convert", "ignore", "llm_int8_skip_modules",
                          "ignored_layers", "exclude_modules", "skip_modules"})
    add_names_in(object, key, config);
  // GPTQ: only these modules of a block are quantised.
  auto inside = object.find("modules_in_block_to_quantize");
  const bool has_inside = inside != object.end() && !inside->is_null();
  config.has_patterns = config.has_patterns || has_inside || has_narrow_targets(object);
  if (auto dynamic = object.find("dynamic"); dynamic != object.end())
    config.has_overrides = dynamic->is_object() && !dynamic->empty();
  config.has_overrides = config.has_overrides || has_unequal_groups(object);
  // Model Optimizer's mixed precision: only the modules of this list are quantised.
  if (object.contains("quantized_layers")) config.has_overrides = config.has_patterns = true;
  if (config.method == "auto-round" || config.method == "intel/auto-round")
    read_auto_round(object, config);
  return config;
}

std::optional<Json> read_object(const Directory& directory, const std::string& path) {
  if (directory.stat(path).kind != EntryKind::kFile) return std::nullopt;
  auto source = directory.open(path);
  if (!source || (*source)->size() > kMaxQuantConfig) return std::nullopt;
  auto bytes = read_bytes(**source, 0, (*source)->size());
  if (!bytes) return std::nullopt;
  const std::string text =
      replace_non_json_floats({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
  auto keep_shallow = [](int depth, Json::parse_event_t, const Json&) { return depth < 64; };
  auto parsed = parse_json<Json>(text, keep_shallow);
  if (!parsed.problem.empty() || !parsed.tree.is_object()) return std::nullopt;
  return std::move(parsed.tree);
}

QuantConfig quant_config_of_mlx(const Json& object) {
  QuantConfig config = quant_config_in(object);
  config.method = "mlx";
  if (auto mode = object.find("mode"); mode != object.end() && mode->is_string())
    config.mode = mode->get<std::string>();
  read_modules(object, config);
  return config;
}

std::optional<QuantConfig> quant_config_from_json(const Json& tree) {
  // MLX writes its settings under "quantization" and "quantization_config", or keeps the converted
  // model's settings in the latter; so "quantization" is read first.
  if (const Json* of_mlx = json_object_member(tree, "quantization");
      of_mlx && of_mlx->contains("bits"))
    return quant_config_of_mlx(*of_mlx);
  for (const char* key : {"quantization_config", "compression_config"}) {
    if (const Json* object = json_object_member(tree, key)) return quant_config_in(*object);
  }
  if (const Json* of_mlx = json_object_member(tree, "quantization"))
    return quant_config_of_mlx(*of_mlx);
  const Json* text = json_object_member(tree, "text_config");
  return text != nullptr ? quant_config_from_json(*text) : std::nullopt;
}

// Reads {"quantization": {"quant_algo": "NVFP4", "group_size": 16, "exclude_modules": [...]}}. With
// MIXED_PRECISION each module has its own algorithm. Null: only the cache is quantised.
std::optional<QuantConfig> quant_config_from_model_optimizer(const Json& tree) {
  const Json* said = json_object_member(tree, "quantization");
  if (said == nullptr) return std::nullopt;
  auto algorithm = said->find("quant_algo");
  if (algorithm == said->end() || !algorithm->is_string()) return std::nullopt;
  QuantConfig config = quant_config_in(*said);
  config.method = "modelopt";
  config.has_overrides = said->contains("quantized_layers");
  config.has_patterns = config.has_patterns || config.has_overrides;
  return config;
}

std::optional<QuantConfig> quant_config_from_file(const Directory& directory,
                                                  const std::string& path) {
  const auto tree = read_object(directory, path);
  if (!tree) return std::nullopt;
  const bool is_of_model_optimizer = path == kQuantisationFiles[0];
  auto config = is_of_model_optimizer ? quant_config_from_model_optimizer(*tree)
                                      : std::optional(quant_config_in(*tree));
  if (!config || (!is_of_model_optimizer && !config->bits)) return std::nullopt;
  if (config->method.empty()) config->method = path == kQuantisationFiles[1] ? "gptq" : "awq";
  config->file = path;
  return config;
}

}  // namespace

QuantSettings settings_of(const QuantConfig& config, std::string_view module) {
  QuantSettings settings = config;
  const auto own = config.modules.find(module);
  if (own == config.modules.end()) return settings;
  const QuantConfig::ModuleOverride& of = own->second;
  if (of.bits) settings.bits = of.bits;
  if (of.group) settings.group = of.group;
  // MLX writes no "mode" for its default mode, so an override with "bits" and without mode resets
  // the mode.
  if (of.bits || !of.mode.empty()) settings.mode = of.mode;
  return settings;
}

std::optional<QuantConfig> read_quant_config(const Directory& directory) {
  if (const auto tree = read_object(directory, kConfigFile)) {
    if (auto config = quant_config_from_json(*tree)) return config;
  }
  const auto file = quantisation_file(directory);
  return file ? quant_config_from_file(directory, *file) : std::nullopt;
}

std::optional<std::string> quantisation_file(const Directory& directory) {
  for (const char* file : kQuantisationFiles) {
    if (quant_config_from_file(directory, file)) return file;
  }
  return std::nullopt;
}

}  // namespace shw
