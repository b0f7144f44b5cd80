// Matches slices of a tensor with slices of the reference if training continued after the
// reference was saved: no bytes are equal, but slices are still similar. For equal bytes see
// block_compare.h.
#pragma once

#include <cstdint>
#include <optional>

#include "core/facts/reference/block_order.h"
#include "core/facts/values/tensor_pieces.h"

namespace shw {

// Requires equal dtype with values and equal shape. Tries every dimension; the first
// with a result wins. Up to 256 leading elements per slice are searched for, and kParts
// parts of the rest are compared with the match. nullopt unless every slice matches
// exactly one place by required_margin() (likeness.h) and some slices are out of place;
// also if it would take too long or slices have fewer than 64 elements. order.margin is
// the least margin.
std::optional<BlockOrder> match_slices_by_correlation(const PiecedTensor& image,
                                                      const PiecedTensor& truth);

// Maximum memory of the comparison, besides a few pieces.
std::uint64_t slice_match_bytes(ExtentsView shape);

}  // namespace shw
