// What the keys of config.json say of names and shapes, architecture by architecture, as
// transformers 5.23 writes and loads them. Only architectures that were held against it stand here:
// a key of the same name means another thing in the next one.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/facts/reference/model_config.h"

namespace shw {

// "layers.*.self_attn.k_proj.weight": its extents in words of the config,
// "num_key_value_heads*head_dim". A term is a product, a sum is of terms. An empty one is not said.
struct SizeLaw {
  std::string_view name;  // a star for each part that is a number
  std::array<std::string_view, 2> extents;
};

// A row of equal modules, and the key that counts them.
struct StackLaw {
  std::string_view name;        // "layers."
  std::string_view count;       // "num_hidden_layers"
  std::string_view more = {};   // layers of another kind that follow: "num_nextn_predict_layers"
  std::string_view inner = {};  // "mlp.experts.": a row in each; alternatives are parted by '|'
  std::string_view inner_count = {};
};

struct ModelLaws {
  std::span<const std::string_view> types;  // model_type
  std::span<const std::string_view> roots;  // what names begin with: "model.", ""
  std::span<const StackLaw> stacks;
  std::span<const SizeLaw> sizes;
  std::string_view head = {};     // of a causal language model, without a root: "lm_head.weight"
  bool derives_head_dim = false;  // where none is said: hidden_size / num_attention_heads
};

// A part of the config with what it says, and where its tensors are.
struct ModelPart {
  const ConfigPart* config = nullptr;
  const ModelLaws* laws = nullptr;
  std::vector<std::string> roots;
  std::vector<std::string> heads;  // names that its head may have
};
std::vector<ModelPart> known_parts(const ModelConfig& config);

// A class of transformers itself, by its ending, that is named after `model_type`. Drafts for
// speculation (LlamaForCausalLMEagle3) share a model_type and have heads and layers of other sizes.
bool is_own_class(std::string_view name, std::string_view model_type);

struct SaidSize {
  std::int64_t value = 0;
  std::string words;              // "num_key_value_heads 2 x head_dim 8 = 16"
  std::vector<std::string> keys;  // as they stand in config.json: "text_config.head_dim"
};
// Nothing where a key of it does not stand there.
std::optional<SaidSize> said_size(const ModelPart& part, std::string_view expression);

// The parts of a text between those places where `mark` stands.
std::vector<std::string_view> split_at(std::string_view text, char mark);

// "layers.3.mlp.fc1.weight" as "layers.*.mlp.fc1.weight".
std::string with_stars(std::string_view name);

}  // namespace shw
