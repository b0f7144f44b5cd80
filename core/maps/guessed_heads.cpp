#include "core/maps/guessed_heads.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

namespace shw {
namespace {

constexpr std::size_t kMaxGuesses = 12;

// Rows of all queries, of all keys and of one head; 0 if no tensor determines it.
struct HeadRows {
  std::int64_t queries = 0, keys = 0, head = 0;
};

HeadRows projection_rows_of_heads(std::span<const MapTensor> tensors) {
  HeadRows rows;
  std::int64_t joined = 0;
  for (const MapTensor& tensor : tensors) {
    const std::string_view name = tensor.fqn;
    const bool is_of_head = name.ends_with("self_attention.q_layernorm.weight") ||
                            name.ends_with("self_attn.q_norm.weight");
    if (is_of_head && !tensor.shape.empty()) rows.head = tensor.shape.back();
    if (tensor.shape.size() < 2) continue;
    const std::int64_t first = tensor.shape[tensor.shape.size() - 2], last = tensor.shape.back();
    if (name.ends_with("self_attention.linear_proj.weight") ||
        name.ends_with("self_attn.o_proj.weight"))
      rows.queries = last;
    else if (name.ends_with("self_attention.linear_qkv.weight"))
      joined = first;
    else if (name.ends_with("self_attn.k_proj.weight"))
      rows.keys = first;
  }
  if (joined > rows.queries && (joined - rows.queries) % 2 == 0)
    rows.keys = (joined - rows.queries) / 2;
  return rows;
}

}  // namespace

std::vector<std::vector<std::string>> guessed_heads(std::span<const MapTensor> tensors) {
  const HeadRows rows = projection_rows_of_heads(tensors);
  std::vector<std::vector<std::string>> out;
  if (rows.queries <= 0 || rows.keys <= 0) return out;
  std::vector<std::int64_t> sizes{128, 64, 256, 96, 80, 192};
  if (rows.head > 0) sizes = {rows.head};
  const std::int64_t most = rows.head > 0 ? 0 : std::min<std::int64_t>(rows.keys, 256);
  for (std::int64_t size = 2; size <= most; size += 2) {
    if (std::find(sizes.begin(), sizes.end(), size) == sizes.end()) sizes.push_back(size);
  }
  for (const std::int64_t size : sizes) {
    if (out.size() == kMaxGuesses) break;
    if (rows.keys % size != 0 || rows.queries % size != 0) continue;
    const std::int64_t groups = rows.keys / size, heads = rows.queries / size;
    if (heads % groups != 0) continue;
    out.push_back({fmt::format("groups={}", groups), fmt::format("heads={}", heads),
                   fmt::format("head_dim={}", size)});
  }
  return out;
}

}  // namespace shw
