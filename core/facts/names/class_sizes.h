// Sizes of tensors that the keys of config.json determine, for the model classes of transformers;
// from assets/config_sizes.json (written by tests/tools/config_sizes.py).
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shw {

// "model.layers.*.mlp.up_proj.weight" and its first two extents: "text_config.intermediate_size".
// An empty expression is not known. "n_embd|hidden_size" are two names of one key.
struct SizesOfName {
  std::string name;  // * stands for each numeric part
  std::array<std::string, 2> extents;
};

// "model.layers." and the key with the number of its members.
struct CountOfList {
  std::string list;
  std::string key;
};

struct ClassSizes {
  std::vector<std::string> types;  // model types that have the class: "llama"
  std::vector<SizesOfName> sizes;
  std::vector<CountOfList> counts;
};

// nullopt if the class ("LlamaForCausalLM") is not in the list.
std::optional<ClassSizes> sizes_of_class(std::string_view class_name);

}  // namespace shw
