// Which operation of a map makes one sequence of lines of others. Lines are numbers that are equal
// where the lines are.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/maps/bind_map.h"

namespace shw {

using LineSequence = std::vector<std::uint64_t>;

// What was found. `ops` have no dim yet: it is that along which the lines are counted.
struct FittedOrder {
  std::vector<std::size_t> from;  // the sequences, in the order in which they are joined
  std::vector<BoundOp> ops;
  // Lines at the end of the result that come from no sequence: padding.
  std::size_t padded = 0;
};

// Sequences of which none is empty, each of them used whole. Of several operations that fit, the
// first of: as it is, permute, regroup, ungroup, reorder; for several sequences join, and join with
// one of the others. Padding comes last.
std::optional<FittedOrder> fit_order(std::span<const LineSequence> from, const LineSequence& to);

// The operation that undoes a permute, a regroup, an ungroup or a reorder.
BoundOp undone(const BoundOp& op);

// What these operations make of the sequences; padding is left out.
LineSequence ordered_by(std::span<const LineSequence> from, const std::vector<BoundOp>& ops);

}  // namespace shw
