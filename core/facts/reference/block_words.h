// Text for an order of blocks by kind of tensor: the same order of rows means gate and up in one
// tensor, and heads in another.
#pragma once

#include <string>
#include <string_view>

#include "core/facts/reference/block_order.h"

namespace shw {

enum class RowKind : std::uint8_t {
  kOther,
  kGateUp,   // gate and up rows
  kHeads,    // attention heads
  kExperts,  // stacked experts
};
// The kind of rows along `dim` of a tensor with `ndim` dimensions.
RowKind row_kind_of(std::string_view fqn, std::size_t ndim, std::size_t dim);

struct OrderName {
  std::string family;  // evidence, stable; "unknown"
  std::string says;    // "two halves (gate and up of a GLU) are swapped"
  std::string link;
};
OrderName name_of(const BlockPattern& pattern, const BlockOrder& order, RowKind kind);

}  // namespace shw
