#include "core/formats/megatron_axes.h"

#include <algorithm>
#include <array>

#include "core/base/parse_text.h"
#include "core/base/words.h"

namespace shw {
namespace {

constexpr auto kRowLayers = std::to_array<std::string_view>(
    {"query_key_value", "query", "key_value", "linear_qkv", "linear_q", "linear_kv",
     "linear_q_proj", "linear_q_up_proj", "linear_kv_up_proj", "word_embeddings", "output_layer",
     "final_linear"});
constexpr auto kGatedLayers = std::to_array<std::string_view>({"dense_h_to_4h", "linear_fc1"});
constexpr auto kColumnLayers =
    std::to_array<std::string_view>({"linear_proj", "dense_4h_to_h", "linear_fc2"});
constexpr auto kAttentionParts = std::to_array<std::string_view>(
    {"self_attention", "inter_attention", "cross_attention", "attention"});
constexpr auto kReplicatedLayers = std::to_array<std::string_view>(
    {"position_embeddings", "tokentype_embeddings", "router", "linear_q_down_proj",
     "linear_kv_down_proj", "rotary_pos_emb"});

// Removes the last part of a dotted name and returns it.
std::string_view consume_last(std::string_view& name) {
  const std::size_t dot = name.rfind('.');
  const std::string_view last = dot == std::string_view::npos ? name : name.substr(dot + 1);
  name = dot == std::string_view::npos ? std::string_view{} : name.substr(0, dot);
  return last;
}

// True for "weight" and "weight12" if `word` is "weight".
bool is_numbered_word(std::string_view text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

TensorSplit tensor_split(std::string_view name, std::optional<bool> is_gated) {
  const std::string_view parameter = consume_last(name);
  const std::string_view layer = consume_last(name);
  const std::string_view around = consume_last(name);
  const bool is_weight = is_numbered_word(parameter, "weight");
  const bool is_bias = is_numbered_word(parameter, "bias");
  if (layer.find("norm") != std::string_view::npos ||
      parameter.find("norm") != std::string_view::npos || is_one_of(layer, kReplicatedLayers))
    return TensorSplit::kReplicated;
  if (parameter == "inv_freq") return TensorSplit::kReplicated;  // belongs to rotary embeddings
  if (!is_weight && !is_bias) return TensorSplit::kUnknown;
  if (is_one_of(layer, kRowLayers)) return TensorSplit::kRows;
  if (is_one_of(layer, kGatedLayers)) {
    if (!is_gated) return TensorSplit::kUnknown;
    return *is_gated ? TensorSplit::kGatedRows : TensorSplit::kRows;
  }
  if (is_one_of(layer, kColumnLayers) || (layer == "dense" && is_one_of(around, kAttentionParts)))
    return is_bias ? TensorSplit::kReplicated : TensorSplit::kColumns;
  return TensorSplit::kUnknown;
}

std::optional<LocalExpert> local_expert(std::string_view name) {
  constexpr std::string_view kLocal = ".local_experts.", kGrouped = ".experts.linear_fc";
  auto number_at = [&](std::size_t at) -> std::optional<LocalExpert> {
    std::string_view rest = name.substr(at);
    const auto number = consume_number(rest);
    if (!number || *number > (1 << 20)) return std::nullopt;
    return LocalExpert{at, name.size() - at - rest.size(), static_cast<std::uint32_t>(*number)};
  };
  if (const std::size_t at = name.find(kLocal); at != std::string_view::npos)
    return number_at(at + kLocal.size());
  if (name.find(kGrouped) == std::string_view::npos) return std::nullopt;
  std::size_t at = name.size();
  while (at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9') --at;
  return at == name.size() ? std::nullopt : number_at(at);
}

}  // namespace shw
