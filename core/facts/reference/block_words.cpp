#include "core/facts/reference/block_words.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "core/base/letter_case.h"
#include "core/base/words.h"

namespace shw {
namespace {

OrderName name_of_heads(const BlockPattern& pattern, const BlockOrder& order) {
  bool by_row = order.block == 1;
  switch (pattern.family) {
    case BlockFamily::kHalvesSwapped:
      return {"heads-permuted", "the two halves of its heads are swapped", ""};
    case BlockFamily::kInterleaved:
      if (by_row)
        return {"rope-interleaved",
                "the rows of its heads are in pairs, as an interleaved rotary embedding takes "
                "them, where the reference keeps two halves",
                ""};
      return {"heads-permuted",
              fmt::format("its heads are interleaved, {} of either half in turn", pattern.second),
              ""};
    case BlockFamily::kHalved:
      if (by_row)
        return {"rope-halved",
                "the rows of its heads are in two halves, where the reference keeps the pairs of "
                "an interleaved rotary embedding",
                ""};
      return {
          "heads-permuted",
          "two halves of its heads are one after the other where the reference interleaves them",
          ""};
    case BlockFamily::kGroupedHeads:
      return {
          "gqa-grouped",
          fmt::format("query, key and value heads are group by group ({} groups of {} queries, a "
                      "key and a value) where the reference stacks all queries, keys and values",
                      pattern.first, pattern.second),
          "NeMo-RL #2802"};
    case BlockFamily::kStackedHeads:
      return {"gqa-stacked",
              fmt::format("all query, key and value heads are stacked where the reference keeps {} "
                          "groups of {} queries, a key and a value",
                          pattern.first, pattern.second),
              "NeMo-RL #2802"};
    default:
      break;
  }
  if (by_row) return {"unknown", "the row order matches no known cause", ""};
  return {"heads-permuted",
          fmt::format("its heads (blocks of {} rows) are in a different order", order.block), ""};
}

OrderName name_of_halves(const BlockPattern& pattern, bool gate_up) {
  std::string halves = gate_up ? "two halves (gate and up of a GLU)" : "two halves";
  switch (pattern.family) {
    case BlockFamily::kHalvesSwapped:
      return {"halves-swapped", halves + " are swapped", gate_up ? "sglang #32430" : ""};
    case BlockFamily::kInterleaved:
      return {
          "interleaved",
          fmt::format("{} are interleaved, {} parts of each, as if each rank stacked its shards",
                      halves, pattern.second),
          gate_up ? "TransformerEngine #2713" : ""};
    case BlockFamily::kHalved:
      return {
          "halved",
          fmt::format(
              "two halves are one after the other where the reference interleaves {} parts of each",
              pattern.first),
          gate_up ? "sglang #32430" : ""};
    default:
      break;
  }
  return {"unknown", "the block order matches no known cause", ""};
}

}  // namespace

RowKind row_kind_of(std::string_view fqn, std::size_t ndim, std::size_t dim) {
  constexpr std::array<std::string_view, 17> kHeads = {
      "qkv",       "query_key_value", "q_proj",    "k_proj",     "v_proj",   "q_b_proj",
      "kv_b_proj", "kv_proj",         "q_up_proj", "kv_up_proj", ".wq.",     ".wk.",
      ".wv.",      "c_attn",          "in_proj",   "attn",       "attention"};
  constexpr std::array<std::string_view, 5> kBehindHeads = {"o_proj", "out_proj", "c_proj", ".wo.",
                                                            "norm"};
  constexpr std::array<std::string_view, 16> kGateUp = {
      "fc1", "gate_up", "up_gate", "gateup", "gate_proj",     "up_proj", "w13",  ".w1",
      ".w3", "glu",     ".wi",     "w_in",   "dense_h_to_4h", "mlp1",    "c_fc", "ffn_gate"};
  const std::string name = lowered(fqn);
  if (ndim >= 3 && dim == 0 && name.find("expert") != name.npos) return RowKind::kExperts;
  // In output projections the columns are heads, not the rows.
  if (contains_any(name, kBehindHeads)) return RowKind::kOther;
  if (contains_any(name, kHeads)) return RowKind::kHeads;
  return contains_any(name, kGateUp) ? RowKind::kGateUp : RowKind::kOther;
}

OrderName name_of(const BlockPattern& pattern, const BlockOrder& order, RowKind kind) {
  if (pattern.family == BlockFamily::kAxesTransposed ||
      (pattern.family == BlockFamily::kSwizzled && kind != RowKind::kGateUp))
    return {"axes-transposed",
            fmt::format("blocks of two axes ({} x {}) are in the order of the other axis",
                        pattern.first, pattern.second),
            ""};
  if (pattern.family == BlockFamily::kSwizzled)
    return {
        "swiglu-swizzle",
        fmt::format("each of {} ranks halved its own slice and labelled the halves as if they were "
                    "gate and up",
                    pattern.first),
        "Megatron-LM #2769"};
  if (kind == RowKind::kExperts)
    return {"experts-permuted",
            order.block == 1
                ? "its experts are in a different order"
                : fmt::format("its experts are in a different order, {} together", order.block),
            ""};
  if (kind == RowKind::kHeads && order.dim == 0) return name_of_heads(pattern, order);
  return name_of_halves(pattern, kind == RowKind::kGateUp);
}

}  // namespace shw
