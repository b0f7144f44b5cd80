#include "core/facts/reference/config_experts.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "core/base/cancellable_range.h"
#include "core/facts/reference/config_general.h"

namespace shw {
namespace {

bool has_any_model_type(const ModelConfig& config, std::span<const std::string_view> types) {
  return std::any_of(config.parts.begin(), config.parts.end(), [&](const ConfigPart& part) {
    return std::find(types.begin(), types.end(), part.model_type) != types.end();
  });
}

// Architectures that multiply from the left store stacks as [experts, in, out]. All others of
// transformers 5.24 (64) store [experts, out, in], like linear layers.
bool stores_in_by_out(const ModelConfig& config) {
  constexpr auto kTypes = std::to_array<std::string_view>(
      {"gpt_oss", "llama4", "llama4_text", "aria", "aria_text", "openai_privacy_filter"});
  return has_any_model_type(config, kTypes);
}

// True for models published in both orders: transformers 5 writes another one than version 4 and
// reads both.
bool is_published_in_both_orders(const ModelConfig& config) {
  constexpr auto kTypes = std::to_array<std::string_view>(
      {"qwen3_vl_moe", "qwen3_vl_moe_text", "qwen3_omni_moe", "dbrx"});
  return has_any_model_type(config, kTypes);
}

struct StackedExperts {
  std::string_view layer;  // "model.layers.0."
  bool takes_hidden_as_input = true;
};

// Parses "model.layers.0.mlp.experts.gate_up_proj", with or without ".weight".
std::optional<StackedExperts> stacked_experts_of(std::string_view fqn) {
  constexpr std::string_view kExpertsPart = ".experts.", kWeight = ".weight";
  if (fqn.ends_with(kWeight)) fqn.remove_suffix(kWeight.size());
  const std::size_t at = fqn.rfind(kExpertsPart);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view matrix = fqn.substr(at + kExpertsPart.size());
  const bool is_down = matrix == "down_proj" || matrix == "w2";
  const bool is_up = matrix == "gate_up_proj" || matrix == "gate_proj" || matrix == "up_proj" ||
                     matrix == "w1" || matrix == "w3" || matrix == "w13";
  if (!is_down && !is_up) return std::nullopt;
  const std::size_t block = fqn.rfind('.', at - 1);
  if (block == std::string_view::npos) return std::nullopt;
  return StackedExperts{fqn.substr(0, block + 1), is_up};
}

// True if a norm of the layer has the hidden size.
bool matches_norm_size(const Checkpoint& c, std::string_view layer, std::int64_t hidden) {
  for (const char* name : {"input_layernorm.weight", "post_attention_layernorm.weight",
                           "norm.weight", "ffn_norm.weight"}) {
    if (auto norm = c.find(std::string(layer) + name))
      return c.shape(*norm).size() == 1 && c.shape(*norm)[0] == hidden;
  }
  return false;
}

std::optional<std::pair<std::string, std::int64_t>> hidden_size_of_part(const ConfigPart& part) {
  for (const char* key : {"hidden_size", "n_embd", "d_model"}) {
    auto found = part.sizes.find(key);
    if (found == part.sizes.end()) continue;
    const std::string before = part.name.empty() ? "" : part.name + ".";
    return std::pair(fmt::format("{}{} {}", before, key, found->second), found->second);
  }
  return std::nullopt;
}

}  // namespace

std::vector<ExchangedAxes> exchanged_experts(const Checkpoint& checkpoint,
                                             const ModelConfig& config, Progress* progress) {
  const Checkpoint& c = checkpoint;
  std::vector<ExchangedAxes> found;
  const auto hidden = hidden_size_of_part(text_part_of(config));
  if (!hidden || config.has_own_code || is_published_in_both_orders(config)) return found;
  const bool in_by_out = stores_in_by_out(config);
  for (TensorId tensor : cancellable_range(c.tensors(), progress)) {
    const ExtentsView shape = c.shape(tensor);
    if (shape.size() != 3 || shape[1] == shape[2] || size_of(c.dtype(tensor)) < 2) continue;
    const auto experts = stacked_experts_of(c.fqn(tensor));
    if (!experts) continue;
    const std::size_t right = experts->takes_hidden_as_input != in_by_out ? 2 : 1;
    if (shape[right] == hidden->second || shape[3 - right] != hidden->second) continue;
    if (!matches_norm_size(c, experts->layer, hidden->second)) continue;
    found.push_back({tensor, {shape[0], shape[2], shape[1]}, hidden->first});
  }
  return found;
}

}  // namespace shw
