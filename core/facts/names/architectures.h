// What the model classes of transformers save: assets/architectures.json, which
// tests/tools/architectures.py writes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shw {

// Names with * for numbers, of one row: all of them are there for a number, or none.
struct NameGroup {
  std::vector<std::string> names;
  bool always = false;  // in every model of the class
};

struct Architecture {
  std::string prefix;  // "model": base_model_prefix, which loaders add and drop
  std::vector<NameGroup> groups;
  std::vector<std::string> ignored;  // parts of names that transformers passes over in silence
  // transformers renames nothing when it loads the class: other names are passed over in silence.
  bool is_exact = false;
  // Beginnings of names in a running model, and what save_pretrained makes of each, the longest
  // first: "model.language_model." and "language_model.model.". A state_dict() that was saved as it
  // was has the first.
  std::vector<std::pair<std::string, std::string>> in_memory;
};

// nullopt if the class ("LlamaForCausalLM") is not in the list.
std::optional<Architecture> architecture_named(std::string_view class_name);

}  // namespace shw
