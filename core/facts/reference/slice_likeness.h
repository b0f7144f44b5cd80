// Which slice of a tensor is which where training went on since the reference was saved: no bytes
// are equal, and slices are still like themselves (spec/failures.md P19, trained models; N1 to N3,
// S5 E5). Beside core/facts/reference/block_compare.h, which asks for equal bytes.
#pragma once

#include <cstdint>
#include <optional>

#include "core/facts/reference/block_order.h"
#include "core/facts/values/tensor_pieces.h"

namespace shw {

// Of one dtype with values and one shape. Looks along every dimension, the first that answers wins.
// Of each slice up to 256 leading elements are searched for, and kParts parts of the rest held
// against the place that was found. Nothing unless every slice is like one place alone, by
// asked_margin() (core/facts/reference/likeness.h), and some are at another's place; nothing where
// that would take long, or a slice has fewer than 64 elements. order.margin is the least margin
// that was met.
std::optional<BlockOrder> order_by_likeness(const PiecedTensor& image, const PiecedTensor& truth);

// What that holds of memory at most, beside a few pieces.
std::uint64_t bytes_to_liken_slices(ExtentsView shape);

}  // namespace shw
