// Tensor names that the model classes of transformers save, from assets/architectures.json (written
// by tests/tools/architectures.py).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shw {

// For each number, a model has all of these names or none; * stands for the number.
struct NameGroup {
  std::vector<std::string> names;
  bool always = false;  // in every model of the class
};

struct Architecture {
  std::string prefix;  // "model": base_model_prefix, which loaders add and drop
  std::vector<NameGroup> groups;
  std::vector<std::string> ignored;  // parts of names that transformers ignores without a warning
  // True if transformers renames nothing when loading the class; it then ignores unknown names
  // without a warning.
  bool is_exact = false;
  // Prefixes of names in a running model and the prefixes that save_pretrained writes for them,
  // longest first: "model.language_model." and "language_model.model.". A plain state_dict() has
  // the former.
  std::vector<std::pair<std::string, std::string>> in_memory;
};

// nullopt if the class ("LlamaForCausalLM") is not in the list.
std::optional<Architecture> architecture_named(std::string_view class_name);

}  // namespace shw
