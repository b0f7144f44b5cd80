// Compares the prefix of an adapter's module names with the prefix that its base class has.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/facts/names/adapter_config.h"
#include "core/facts/names/architectures.h"
#include "core/model/checkpoint.h"

namespace shw {

// Every module begins with `found`, where the class has `expected`: "" and "model.".
struct AdapterPrefix {
  std::string found, expected;
  std::string of;  // "LlamaForCausalLM"
};

// The name of a module as PEFT's loader would have it, without "base_model.model.".
std::optional<std::string> module_in_adapter(std::string_view fqn);
std::vector<std::string> modules_in_adapter(const Checkpoint& adapter);

// True if the adapter's task_type belongs to models that hold their body in an attribute
// ("CAUSAL_LM": `model`).
bool is_for_model_with_head(const AdapterConfig& config);

// nullopt unless no module is one of the class, and all are by one change. Classes that
// transformers renames for are not checked: their names differ between its versions.
std::optional<AdapterPrefix> prefix_from_class(const std::vector<std::string>& modules,
                                               const std::string& class_name);

// By adapter_config.json alone: its class, or a task whose models hold their body in a part.
// `expected` is empty where the part's name is not known.
std::optional<AdapterPrefix> prefix_from_config(const std::vector<std::string>& modules,
                                                const AdapterConfig& config);

}  // namespace shw
