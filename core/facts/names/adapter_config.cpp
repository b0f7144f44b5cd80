#include "core/facts/names/adapter_config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/json.h"
#include "core/facts/names/wrapper_marks.h"
#include "core/formats/common/python_json.h"

namespace shw {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMaxAdapterConfig = std::uint64_t{4} << 20;
constexpr std::uint64_t kMaxLayers = 100'000;
constexpr std::int64_t kLargestRank = std::int64_t{1} << 32;

std::vector<std::string> adapter_texts(const Json& object, const char* key) {
  std::vector<std::string> texts;
  auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return texts;
  // PEFT lists the modules of a classification head twice beside a prompt.
  std::set<std::string_view> seen;
  for (const Json& one : *found) {
    if (!one.is_string()) continue;
    const auto& text = one.get_ref<const std::string&>();
    if (seen.insert(text).second) texts.push_back(text);
  }
  return texts;
}

std::optional<std::int64_t> adapter_rank(const Json& value) {
  if (!value.is_number_unsigned()) return std::nullopt;
  const auto rank = value.get<std::uint64_t>();
  if (rank == 0 || rank > static_cast<std::uint64_t>(kLargestRank)) return std::nullopt;
  return static_cast<std::int64_t>(rank);
}

bool is_set(const Json& object, const char* key) {
  auto found = object.find(key);
  if (found == object.end() || found->is_null()) return false;
  if (found->is_boolean()) return found->get<bool>();
  return !found->empty();
}

std::optional<double> adapter_number(const Json& value) {
  if (!value.is_number()) return std::nullopt;
  return value.get<double>();
}

// Initialisations for which PEFT derives the matrices from the base's weight and subtracts their
// product from it.
std::string initialisation_that_changes_base(const Json& object) {
  const auto found = object.find("init_lora_weights");
  if (found == object.end() || !found->is_string()) return {};
  const auto text = found->get<std::string>();
  for (const char* start : {"pissa", "olora", "corda", "loftq", "lora_ga"}) {
    if (text.starts_with(start)) return text;
  }
  return {};
}

void read_scale(const Json& object, AdapterConfig& config) {
  if (auto alpha = object.find("lora_alpha"); alpha != object.end())
    config.alpha = adapter_number(*alpha);
  if (auto all = object.find("alpha_pattern"); all != object.end() && all->is_object()) {
    for (const auto& [module, value] : all->items()) {
      if (auto alpha = adapter_number(value)) config.alpha_pattern.emplace_back(module, *alpha);
    }
  }
  config.use_rslora = is_set(object, "use_rslora");
  config.fan_in_fan_out = is_set(object, "fan_in_fan_out");
  config.changes_base = initialisation_that_changes_base(object);
}

// `r` and `lora_alpha` may be absent; then PEFT's defaults count.
void collect_unusable_rank_and_alpha(const Json& object, AdapterConfig& config) {
  const auto rank = object.find("r"), alpha = object.find("lora_alpha");
  if (rank != object.end() && !adapter_rank(*rank)) config.unusable.push_back("r " + rank->dump());
  if (alpha != object.end() && !alpha->is_number())
    config.unusable.push_back("lora_alpha " + alpha->dump());
}

void read_prompt(const Json& object, AdapterConfig& config) {
  const auto tokens = object.find("num_virtual_tokens");
  if (tokens == object.end()) return;
  const auto count = adapter_rank(*tokens);
  const auto parts = object.find("num_transformer_submodules");
  const auto times = parts != object.end() ? adapter_rank(*parts) : std::nullopt;
  constexpr std::int64_t kMaxParts = 2;  // an encoder and a decoder
  // The rows of keys and values do not depend on the number of parts.
  const bool has_own_rows = config.peft_type == "PREFIX_TUNING" || config.peft_type == "CARTRIDGE";
  const std::int64_t rows = has_own_rows ? 1 : times.value_or(1);
  if (count && rows <= kMaxParts) config.virtual_tokens = *count * rows;
}

void read_numbers(const Json& object, AdapterConfig& config) {
  constexpr std::string_view kPattern = "_pattern";
  for (const auto& [key, value] : object.items()) {
    const bool is_number = value.is_number_unsigned() &&
                           value.get<std::uint64_t>() <= static_cast<std::uint64_t>(kLargestRank);
    if (is_number) config.numbers.emplace(key, value.get<std::int64_t>());
    if (!value.is_object() || !key.ends_with(kPattern)) continue;
    auto& pattern = config.patterns[key.substr(0, key.size() - kPattern.size())];
    for (const auto& [module, number] : value.items()) {
      if (auto size = adapter_rank(number)) pattern.emplace_back(module, *size);
    }
  }
}

void read_layers(const Json& object, AdapterConfig& config) {
  const auto add = [&](const Json& value) {
    if (value.is_number_unsigned() && value.get<std::uint64_t>() <= kMaxLayers)
      config.layers.push_back(value.get<std::int64_t>());
  };
  if (auto layers = object.find("layers_to_transform"); layers != object.end()) {
    if (layers->is_array())
      for (const Json& one : *layers) add(one);
    else
      add(*layers);
  }
  const auto pattern = object.find("layers_pattern");
  if (pattern != object.end() && pattern->is_string() && !pattern->get<std::string>().empty())
    config.layer_patterns = {pattern->get<std::string>()};
  else
    config.layer_patterns = adapter_texts(object, "layers_pattern");
}

AdapterConfig adapter_config_in(const Json& object) {
  AdapterConfig config;
  if (auto type = object.find("peft_type"); type != object.end() && type->is_string())
    config.peft_type = type->get<std::string>();
  if (auto task = object.find("task_type"); task != object.end() && task->is_string())
    config.task = task->get<std::string>();
  if (auto mapping = object.find("auto_mapping"); mapping != object.end() && mapping->is_object()) {
    const auto name = mapping->find("base_model_class");
    if (name != mapping->end() && name->is_string()) config.base_class = name->get<std::string>();
  }
  if (auto rank = object.find("r"); rank != object.end()) config.rank = adapter_rank(*rank);
  if (auto ranks = object.find("rank_pattern"); ranks != object.end() && ranks->is_object()) {
    for (const auto& [module, value] : ranks->items()) {
      if (auto rank = adapter_rank(value)) config.rank_pattern.emplace_back(module, *rank);
    }
  }
  config.targets = adapter_texts(object, "target_modules");
  config.saved = adapter_texts(object, "modules_to_save");
  config.excludes_modules = is_set(object, "exclude_modules");
  config.ties_weights = is_set(object, "ensure_weight_tying");
  config.is_limited_to_layers =
      is_set(object, "layers_to_transform") ||
      (object.contains("layers_to_transform") && object["layers_to_transform"].is_number());
  read_layers(object, config);
  collect_unusable_rank_and_alpha(object, config);
  read_prompt(object, config);
  read_numbers(object, config);
  config.has_rank_pattern = is_set(object, "rank_pattern");
  config.use_dora = is_set(object, "use_dora");
  config.trains_tokens = is_set(object, "trainable_token_indices");
  read_scale(object, config);
  config.wraps_parameters = is_set(object, "target_parameters");
  config.parameters = adapter_texts(object, "target_parameters");
  for (const char* key : {"use_qalora", "use_bdlora", "layer_replication", "megatron_config"})
    config.has_unknown_rows = config.has_unknown_rows || is_set(object, key);
  config.has_other_rows = config.has_unknown_rows || config.wraps_parameters;
  return config;
}

// A pattern for module names, which PEFT matches as "(.*\\.)?(PATTERN)$". Only plain text with
// escaped dots is supported; "^" anchors it to the begin of the name.
struct ModulePattern {
  std::string text;
  bool is_whole = false;

  bool fits(std::string_view module) const {
    return is_whole ? module == text : ends_in_module(module, text);
  }
};
std::optional<ModulePattern> module_pattern(std::string_view pattern) {
  ModulePattern found;
  found.is_whole = pattern.starts_with('^');
  if (found.is_whole) pattern.remove_prefix(1);
  if (pattern.ends_with('$')) pattern.remove_suffix(1);
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern.substr(i, 2) == "\\.")
      ++i;
    else if (std::string_view("\\*+?()[]{}|^$").find(pattern[i]) != std::string_view::npos)
      return std::nullopt;
    found.text += pattern[i];
  }
  return found;
}

// nullopt if a regular expression may override the number.
std::optional<std::int64_t> number_by_module_pattern(
    const std::vector<std::pair<std::string, std::int64_t>>& patterns, std::string_view module,
    std::optional<std::int64_t> otherwise) {
  for (const auto& [pattern, number] : patterns) {
    const auto plain = module_pattern(pattern);
    if (!plain) return std::nullopt;
    if (plain->fits(module)) return number;
  }
  return otherwise;
}

struct LoraStem {
  std::string_view text;
  LoraPart part;
};
constexpr auto kLoraStems = std::to_array<LoraStem>({
    {".lora_A", LoraPart::kA},
    {".lora_B", LoraPart::kB},
    {".lora_embedding_A", LoraPart::kEmbeddingA},
    {".lora_embedding_B", LoraPart::kEmbeddingB},
    {".lora_magnitude_vector", LoraPart::kMagnitude},
});

void erase_all(std::string& text, std::string_view part) {
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part))
    text.erase(at, part.size());
}

}  // namespace

Result<std::optional<AdapterConfig>> read_adapter_config(const Directory& directory) {
  if (directory.stat(kAdapterConfigFile).kind != EntryKind::kFile) return std::nullopt;
  auto unusable = [](std::string why) {
    return fail(ErrorKind::kDamaged, std::move(why), Place{.file = kAdapterConfigFile});
  };
  SHW_TRY(auto source, directory.open(kAdapterConfigFile));
  if (source->size() > kMaxAdapterConfig) return unusable("is too large for a config");
  SHW_TRY(Bytes bytes, read_bytes(*source, 0, source->size()));
  const std::string text =
      replace_non_json_floats({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  auto keep_shallow = [](int depth, Json::parse_event_t, const Json&) { return depth < 32; };
  auto parsed = parse_json<Json>(text, keep_shallow);
  if (!parsed.problem.empty() || !parsed.tree.is_object()) return unusable("is not a JSON object");
  return adapter_config_in(parsed.tree);
}

std::optional<std::int64_t> layer_of_module(const AdapterConfig& config, std::string_view module) {
  const std::vector<std::string> patterns =
      config.layer_patterns.empty() ? std::vector<std::string>{""} : config.layer_patterns;
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= module.size();) {
    const std::size_t dot = std::min(module.find('.', at), module.size());
    parts.push_back(module.substr(at, dot - at));
    at = dot + 1;
  }
  // The last part of a name is the module itself, so only earlier parts are compared.
  for (const std::string& pattern : patterns) {
    for (std::size_t i = pattern.empty() ? 2 : 1; i + 1 < parts.size(); ++i) {
      if (!pattern.empty() && parts[i - 1] != pattern) continue;
      std::int64_t layer = 0;
      const char* end = parts[i].data() + parts[i].size();
      const auto [last, problem] = std::from_chars(parts[i].data(), end, layer);
      if (problem == std::errc() && last == end && layer >= 0) return layer;
    }
  }
  return std::nullopt;
}

bool ends_in_module(std::string_view module, std::string_view target) {
  if (!module.ends_with(target)) return false;
  return module.size() == target.size() || module[module.size() - target.size() - 1] == '.';
}

std::optional<std::int64_t> rank_of_module(const AdapterConfig& config, std::string_view module) {
  return number_by_module_pattern(config.rank_pattern, module, config.rank);
}

std::optional<std::int64_t> number_of_module(const AdapterConfig& config, std::string_view key,
                                             std::string_view module) {
  const auto number = config.numbers.find(key);
  const auto pattern = config.patterns.find(key);
  const auto all = number == config.numbers.end() ? std::nullopt : std::optional(number->second);
  return pattern == config.patterns.end() ? all
                                          : number_by_module_pattern(pattern->second, module, all);
}

std::optional<double> scale_of_module(const AdapterConfig& config, std::string_view module,
                                      std::int64_t rank) {
  std::optional<double> alpha = config.alpha;
  bool is_found = false;
  for (const auto& [pattern, value] : config.alpha_pattern) {
    const auto plain = module_pattern(pattern);
    if (!plain) return std::nullopt;
    if (!plain->fits(module)) continue;
    // PEFT uses the first matching pattern in file order, which the parsed JSON does not keep.
    if (is_found && alpha != value) return std::nullopt;
    is_found = true;
    alpha = value;
  }
  if (!alpha || rank <= 0) return std::nullopt;
  const auto of_rank = static_cast<double>(rank);
  return *alpha / (config.use_rslora ? std::sqrt(of_rank) : of_rank);
}

std::optional<LoraName> lora_name(std::string_view fqn) {
  for (const LoraStem& stem : kLoraStems) {
    const std::size_t at = fqn.rfind(stem.text);
    if (at == std::string_view::npos) continue;
    const std::size_t end = at + stem.text.size();
    if (end != fqn.size() && fqn[end] != '.') continue;
    std::string module(fqn.substr(0, at));
    while (module.starts_with(kPeftRoot)) module.erase(0, kPeftRoot.size());
    return LoraName{stem.part, std::move(module)};
  }
  return std::nullopt;
}

std::string adapter_file_name(std::string_view fqn) {
  std::string name = without_wrappers(fqn, true).name;
  while (name.starts_with(kPeftRoot)) name.erase(0, kPeftRoot.size());
  constexpr std::string_view kHalfRoot = "base_model.";
  if (name.starts_with(kHalfRoot)) name.erase(0, kHalfRoot.size());
  // PEFT removes the adapter's name from tensor names when it writes the file.
  for (const LoraStem& stem : kLoraStems) {
    const std::size_t at = name.rfind(stem.text);
    if (at == std::string::npos) continue;
    const std::size_t end = at + stem.text.size();
    const std::string rest = name.substr(end);
    const bool has_own_name = rest.ends_with(".weight") && rest.size() > 7;
    if (has_own_name) name.replace(end, rest.size(), ".weight");
    break;
  }
  erase_all(name, ".modules_to_save.default");
  erase_all(name, ".modules_to_save");
  return std::string(kPeftRoot) + name;
}

bool is_adapter(const Checkpoint& checkpoint) {
  const auto tensors = checkpoint.tensors();
  if (checkpoint.tensor_count() == 0) return false;
  const bool has_config = checkpoint.directory() != nullptr &&
                          checkpoint.directory()->stat(kAdapterConfigFile).kind == EntryKind::kFile;
  std::size_t adapters = 0;
  for (TensorId tensor : tensors) adapters += is_adapter_name(checkpoint.fqn(tensor)) ? 1 : 0;
  return adapters == checkpoint.tensor_count() || (has_config && adapters != 0);
}

}  // namespace shw
