// Finds the map operation that makes one sequence of lines from others. Equal lines have equal
// numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/maps/bind_map.h"

namespace shw {

using LineSequence = std::vector<std::uint64_t>;

// The operations that fit. Their `dim` is not set yet: it is the dim that the lines are counted
// along.
struct FittedOrder {
  std::vector<std::size_t> from;  // indices of the sequences in the order in which they are joined
  std::vector<BoundOp> ops;
  // Number of padding lines at the end of the result, which come from no sequence.
  std::size_t padded = 0;
};

// The first fit, tried in this order: unchanged, permute, regroup, ungroup, reorder; for several
// sequences a join, then a join with one of these. Padding comes last. No sequence may be empty,
// and each is used whole.
std::optional<FittedOrder> fit_order(std::span<const LineSequence> from, const LineSequence& to);

// The inverse of a permute, regroup, ungroup or reorder.
BoundOp undone(const BoundOp& op);

// Applies these operations to the sequences, without padding.
LineSequence apply_ops(std::span<const LineSequence> from, const std::vector<BoundOp>& ops);

}  // namespace shw
