// Guesses from a name how tensor parallelism splits a matrix: by columns (rows of the weight, and
// its bias) or by rows (columns of the weight). Names alone never justify a finding.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shw {

enum class ParallelKind : std::uint8_t { kColumn, kRow };

// "model.layers.0.mlp.linear_fc1.weight_w" has block "model.layers.0.mlp.", matrix "linear_fc1" and
// part "weight_w".
struct ParallelName {
  ParallelKind kind = ParallelKind::kColumn;
  std::string_view block, matrix, part;
  bool is_bias() const { return part.starts_with("bias"); }
  bool is_half() const { return part.ends_with("_w") || part.ends_with("_v"); }
};

inline std::optional<ParallelName> parallel_name(std::string_view fqn) {
  constexpr std::array<std::string_view, 19> kColumns{
      "fc1",          "linear_fc1", "gate_proj", "up_proj",  "gate_up_proj", "w1",
      "w3",           "q_proj",     "k_proj",    "v_proj",   "wq",           "wk",
      "wv",           "qkv",        "wqkv",      "qkv_proj", "linear_qkv",   "query_key_value",
      "dense_h_to_4h"};
  constexpr std::array<std::string_view, 9> kRows{"fc2", "linear_fc2",  "down_proj",
                                                  "w2",  "o_proj",      "out_proj",
                                                  "wo",  "linear_proj", "dense_4h_to_h"};
  constexpr std::array<std::string_view, 6> kParts{"weight",   "bias",   "weight_w",
                                                   "weight_v", "bias_w", "bias_v"};
  // Experts have their own constraints (router_constraint.h).
  if (fqn.find("experts") != std::string_view::npos) return std::nullopt;
  std::size_t last = fqn.rfind('.');
  if (last == std::string_view::npos || last == 0) return std::nullopt;
  ParallelName name;
  name.part = fqn.substr(last + 1);
  std::string_view rest = fqn.substr(0, last);
  std::size_t before = rest.rfind('.');
  std::size_t at = before == std::string_view::npos ? 0 : before + 1;
  name.block = rest.substr(0, at);
  name.matrix = rest.substr(at);
  auto is_in = [](const auto& words, std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  if (!is_in(kParts, name.part)) return std::nullopt;
  if (is_in(kColumns, name.matrix))
    name.kind = ParallelKind::kColumn;
  else if (is_in(kRows, name.matrix))
    name.kind = ParallelKind::kRow;
  else
    return std::nullopt;
  return name;
}

inline bool is_tensor_axis(std::string_view name) {
  return name == "tp" || name == "tensor" || name == "tensor_parallel" || name == "model_parallel";
}

}  // namespace shw
