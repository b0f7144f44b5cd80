// Relations between the keys of config.json and tensor names and shapes, per architecture, as in
// transformers 5.23. Only architectures that were verified against transformers are listed, because
// keys of the same name mean different things elsewhere.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/facts/reference/model_config.h"

namespace shw {

// "layers.*.self_attn.k_proj.weight" and its extents as sums of products of keys:
// "num_key_value_heads*head_dim". An empty expression is not checked.
struct SizeConstraint {
  std::string_view name;  // * stands for each numeric part
  std::array<std::string_view, 2> extents;
};

// A list of equal modules, and the key with their number.
struct StackConstraint {
  std::string_view name;        // "layers."
  std::string_view count;       // "num_hidden_layers"
  std::string_view more = {};   // key of further layers: "num_nextn_predict_layers"
  std::string_view inner = {};  // "mlp.experts.": list in each module; alternatives with '|'
  std::string_view inner_count = {};
};

struct ModelConstraints {
  std::span<const std::string_view> types;  // model_type
  std::span<const std::string_view> roots;  // possible prefixes of names: "model.", ""
  std::span<const StackConstraint> stacks;
  std::span<const SizeConstraint> sizes;
  std::string_view head = {};     // of a causal language model, without prefix: "lm_head.weight"
  bool derives_head_dim = false;  // default: hidden_size / num_attention_heads
  bool is_of_class = false;       // from the table of a class (class_constraints.h)
};

// A part of the config, and the names of its tensors.
struct ModelPart {
  const ConfigPart* config = nullptr;
  const ModelConstraints* constraints = nullptr;
  std::vector<std::string> roots;
  std::vector<std::string> heads;  // possible names of the head
  bool classifies = false;         // has a row of the head per name in kLabelNames
};
std::vector<ModelPart> parts_with_known_constraints(const ModelConfig& config);

// The head of transformers' own classes for classification; nullopt for other classes.
std::optional<ModelPart> classifier_head_part(const ModelConfig& config);

struct ConstraintOfName {
  const ModelPart* part = nullptr;
  std::array<std::string_view, 2> extents;
};

// Keys are names with * for numbers, including prefixes.
using ConstraintsByName = std::unordered_map<std::string, ConstraintOfName>;
ConstraintsByName constraints_by_name(const std::vector<ModelPart>& parts);

// True for transformers' own class of `model_type`, checked by its suffix. Draft models for
// speculation (LlamaForCausalLMEagle3) share the model_type but have other heads and layers.
bool is_transformers_class(std::string_view name, std::string_view model_type);

struct ConfiguredSize {
  std::int64_t value = 0;
  std::string words;              // "num_key_value_heads 2 x head_dim 8 = 16"
  std::vector<std::string> keys;  // as in config.json: "text_config.head_dim"
};
// nullopt if a key of the expression is not in the config.
std::optional<ConfiguredSize> configured_size(const ModelPart& part, std::string_view expression);

// Replaces numbers: "layers.3.mlp.fc1.weight" becomes "layers.*.mlp.fc1.weight".
std::string replace_numbers_by_stars(std::string_view name);

}  // namespace shw
