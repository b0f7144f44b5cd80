#include "core/facts/reference/model_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/formats/common/python_json.h"

namespace shw {
namespace {

using Json = nlohmann::json;

// Size limit: the longest config on the Hub lists class names and has about 100 kB.
constexpr std::uint64_t kMaxConfigBytes = std::uint64_t{4} << 20;
constexpr int kDeepestConfig = 64;  // real ones nest 4 levels; the parser keeps a row per level
constexpr std::int64_t kLargestSize = std::int64_t{1} << 40;

tl::unexpected<Error> unusable_config(std::string why,
                                      std::optional<std::uint64_t> at = std::nullopt) {
  return fail(ErrorKind::kDamaged, std::move(why), {kConfigFile, at});
}

bool is_nested_deeper(std::string_view text, int most) {
  int depth = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_text && c == '\\') ++i;
    if (c == '"') in_text = !in_text;
    if (in_text) continue;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (depth > most) return true;
  }
  return false;
}

std::string text_in(const Json& object, const char* key) {
  auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

bool has_given_key(const Json& object, const char* key) {
  auto found = object.find(key);
  return found != object.end() && !found->is_null();
}

std::optional<std::int64_t> size_in(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto size = value.get<std::uint64_t>();
    if (size <= static_cast<std::uint64_t>(kLargestSize)) return static_cast<std::int64_t>(size);
  }
  return std::nullopt;
}

ConfigPart part_in(const Json& object, std::string name) {
  ConfigPart part{std::move(name), text_in(object, "model_type"), {}, {}, {}};
  for (const auto& [key, value] : object.items()) {
    if (value.is_boolean()) part.flags.emplace(key, value.get<bool>());
    if (auto size = size_in(value)) part.sizes.emplace(key, *size);
    // transformers creates one class per name.
    if (key == kLabelNames && value.is_object())
      part.sizes.emplace(key, static_cast<std::int64_t>(value.size()));
  }
  if (auto types = object.find("layer_types"); types != object.end() && types->is_array())
    part.layer_types = static_cast<std::int64_t>(types->size());
  part.derives_head_dim = !has_given_key(object, "head_dim");
  return part;
}

// False if nothing, or only the cache, is quantised.
bool quantises_weights(const Json& said) {
  if (!said.is_object()) return true;
  if (said.contains("quant_algo") && !has_given_key(said, "quant_algo")) return false;
  if (text_in(said, "format") == "dense") return false;
  auto groups = said.find("config_groups");
  const bool has_groups = groups == said.end() || !groups->is_object() || !groups->empty();
  auto loads = [&](const char* key) {
    auto found = said.find(key);
    return found == said.end() || found->is_null() || *found == true;
  };
  const bool is_loaded = loads("load_in_4bit") || loads("load_in_8bit");
  return has_groups && is_loaded;
}

std::optional<DeclaredQuantisation> quantisation_in(const Json& part, const std::string& before) {
  // "quantization" is used by MLX, "compression_config" by compressed-tensors.
  for (const char* key : {"quantization_config", "quantization", "compression_config"}) {
    if (!has_given_key(part, key)) continue;
    const Json& said = part.at(key);
    return DeclaredQuantisation{before + key, said.is_object() ? text_in(said, "quant_method") : "",
                                quantises_weights(said)};
  }
  return std::nullopt;
}

ModelConfig config_in(const Json& object) {
  ModelConfig config;
  config.parts.push_back(part_in(object, ""));
  config.is_of_transformers = has_given_key(object, "transformers_version");
  for (const auto& [key, value] : object.items()) {
    // CLIP's "text_config_dict" overrides "text_config".
    if (value.is_object() && !has_given_key(object, (key + "_dict").c_str()))
      config.parts.push_back(part_in(value, key));
  }
  auto classes = object.find("architectures");
  if (classes != object.end() && classes->is_array()) {
    for (const Json& name : *classes) {
      if (name.is_string()) config.architectures.push_back(name.get<std::string>());
    }
  }
  config.dtype = text_in(object, "dtype");
  if (config.dtype.empty()) config.dtype = text_in(object, "torch_dtype");
  config.quantisation = quantisation_in(object, "");
  for (const auto& [key, value] : object.items()) {
    if (!config.quantisation && value.is_object())
      config.quantisation = quantisation_in(value, key + ".");
  }
  config.packs_weights = config.quantisation.has_value();
  config.has_own_code = has_given_key(object, "auto_map");
  return config;
}

struct ConfigTree {
  Json root;
};
Result<ConfigTree> config_tree(std::string_view json) {
  if (is_nested_deeper(json, kDeepestConfig)) return unusable_config("is nested too deep");
  const std::string text = replace_non_json_floats(json);
  auto parsed = parse_json<Json>(text);
  if (!parsed.problem.empty())
    return unusable_config(json_error_text(parsed), json_error_offset(parsed));
  return ConfigTree{std::move(parsed.tree)};
}

// nullopt if there is no such file.
Result<std::optional<std::string>> config_text(const Directory& directory) {
  if (directory.stat(kConfigFile).kind != EntryKind::kFile) return std::nullopt;
  SHW_TRY(auto source, directory.open(kConfigFile));
  if (source->size() > kMaxConfigBytes) return unusable_config("is too large for a config");
  SHW_TRY(const Bytes bytes, read_bytes(*source, 0, source->size()));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace

const ConfigPart* ModelConfig::find(std::string_view part) const {
  auto found = std::find_if(parts.begin(), parts.end(),
                            [&](const ConfigPart& one) { return one.name == part; });
  return found == parts.end() ? nullptr : &*found;
}

Result<std::optional<ModelConfig>> parse_model_config(std::string_view json) {
  SHW_TRY(const ConfigTree tree, config_tree(json));
  if (!tree.root.is_object() || text_in(tree.root, "model_type").empty()) return std::nullopt;
  return config_in(tree.root);
}

Result<std::optional<ModelConfig>> read_model_config(const Directory& directory) {
  SHW_TRY(const auto text, config_text(directory));
  return text ? parse_model_config(*text) : Result<std::optional<ModelConfig>>(std::nullopt);
}

Result<std::optional<ConfigPart>> read_config_numbers(const Directory& directory) {
  SHW_TRY(const auto text, config_text(directory));
  if (!text) return std::nullopt;
  SHW_TRY(const ConfigTree tree, config_tree(*text));
  if (!tree.root.is_object()) return std::nullopt;
  return part_in(tree.root, "");
}

std::string timm_architecture(const Directory& directory) {
  const auto text = config_text(directory);
  if (!text || !*text) return "";
  const auto tree = config_tree(**text);
  if (!tree || !tree->root.is_object() || has_given_key(tree->root, "model_type")) return "";
  const bool is_of_timm =
      has_given_key(tree->root, "pretrained_cfg") || has_given_key(tree->root, "num_classes");
  return is_of_timm ? text_in(tree->root, "architecture") : "";
}

}  // namespace shw
