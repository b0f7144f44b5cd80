#include "core/facts/names/adapter_prefix.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "core/facts/names/wrapper_marks.h"
#include "core/facts/reference/config_constraints.h"

namespace shw {
namespace {

constexpr std::size_t kMaxStripped = 2;  // parts: "model.model.layers"

using ClassModules = std::unordered_set<std::string>;

ClassModules modules_of_class(const Architecture& architecture) {
  constexpr std::string_view kWeight = ".weight";
  ClassModules modules;
  for (const NameGroup& group : architecture.groups) {
    for (const std::string& name : group.names) {
      if (name.ends_with(kWeight)) modules.insert(name.substr(0, name.size() - kWeight.size()));
    }
  }
  return modules;
}

// "model." and "model.language_model." of "model.language_model.layers.0.mlp.up_proj": whole parts
// that all modules begin with, none of them a number.
std::vector<std::string> common_beginnings(const std::vector<std::string>& modules) {
  std::vector<std::string> found{""};
  for (std::size_t at = 0; found.size() <= kMaxStripped;) {
    const std::size_t dot = modules.front().find('.', at);
    if (dot == std::string::npos) break;
    const std::string beginning = modules.front().substr(0, dot + 1);
    if (replace_numbers_by_stars(beginning) != beginning ||
        !std::all_of(modules.begin(), modules.end(),
                     [&](const std::string& module) { return module.starts_with(beginning); }))
      break;
    found.push_back(beginning);
    at = dot + 1;
  }
  return found;
}

bool all_in_class(const ClassModules& of_class, const std::vector<std::string>& modules,
                  const AdapterPrefix& change) {
  return std::all_of(modules.begin(), modules.end(), [&](const std::string& module) {
    return of_class.contains(
        replace_numbers_by_stars(change.expected + module.substr(change.found.size())));
  });
}

// "layers.0.self_attn.q_proj": a number is the second part.
bool begins_with_layer(std::string_view module) {
  const std::size_t dot = module.find('.');
  if (dot == std::string_view::npos) return false;
  const std::string_view rest = module.substr(dot + 1);
  const std::size_t end = rest.find('.');
  return end != std::string_view::npos && end != 0 &&
         rest.substr(0, end).find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

std::optional<std::string> module_in_adapter(std::string_view fqn) {
  if (!lora_name(fqn)) return std::nullopt;
  auto name = lora_name(adapter_file_name(fqn));
  return name ? std::optional(std::move(name->module)) : std::nullopt;
}

std::vector<std::string> modules_in_adapter(const Checkpoint& adapter) {
  std::vector<std::string> modules;
  for (TensorId tensor : adapter.tensors()) {
    if (auto module = module_in_adapter(adapter.fqn(tensor))) modules.push_back(std::move(*module));
  }
  return modules;
}

bool is_for_model_with_head(const AdapterConfig& config) {
  constexpr auto kTasks =
      std::to_array<std::string_view>({"CAUSAL_LM", "SEQ_CLS", "TOKEN_CLS", "QUESTION_ANS"});
  return std::find(kTasks.begin(), kTasks.end(), config.task) != kTasks.end();
}

std::optional<AdapterPrefix> prefix_from_class(const std::vector<std::string>& modules,
                                               const std::string& class_name) {
  const auto architecture = architecture_named(class_name);
  if (!architecture || !architecture->is_exact || modules.empty()) return std::nullopt;
  const ClassModules of_class = modules_of_class(*architecture);
  if (std::any_of(modules.begin(), modules.end(), [&](const std::string& module) {
        return of_class.contains(replace_numbers_by_stars(module));
      }))
    return std::nullopt;
  for (const std::string& found : common_beginnings(modules)) {
    for (const std::string& expected : {std::string(), architecture->prefix + "."}) {
      AdapterPrefix change{found, expected, class_name};
      if (found != expected && all_in_class(of_class, modules, change)) return change;
    }
  }
  return std::nullopt;
}

std::optional<AdapterPrefix> prefix_from_config(const std::vector<std::string>& modules,
                                                const AdapterConfig& config) {
  if (modules.empty()) return std::nullopt;
  if (!config.base_class.empty()) return prefix_from_class(modules, config.base_class);
  // No class of transformers for these tasks has its layers in itself.
  if (!is_for_model_with_head(config) ||
      !std::all_of(modules.begin(), modules.end(), begins_with_layer))
    return std::nullopt;
  const bool is_of_llama =
      std::all_of(modules.begin(), modules.end(), [](const std::string& module) {
        return module.starts_with("layers.") && (module.find(".self_attn.") != std::string::npos ||
                                                 module.find(".mlp.") != std::string::npos);
      });
  return AdapterPrefix{"", is_of_llama ? "model." : "", "a model for " + config.task};
}

}  // namespace shw
