// Proves that boxes cover a shape exactly once, and computes the uncovered rest. Every plan is
// checked with it.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/tensor/shape.h"

namespace shw {

// True if every element of `shape` is in exactly one box; empty boxes are ignored. Exact: compares
// the signed corners of the boxes with those of the whole, O(n log n) if few dimensions are split.
// Slices of slices, as a mesh makes them, are proved without corners.
bool tiles_exactly(std::span<const Box> boxes, ExtentsView shape);

// True if no element is in two boxes; all boxes must be inside `shape`.
bool are_disjoint(std::span<const Box> boxes);

// `shape` minus the boxes, as disjoint boxes; nullopt if there are more than `limit`.
std::optional<std::vector<Box>> complement(std::span<const Box> boxes, ExtentsView shape,
                                           std::size_t limit = 1'000'000);

// Total number of elements of all boxes; nullopt on int64 overflow.
std::optional<std::int64_t> total_volume(std::span<const Box> boxes);

}  // namespace shw
