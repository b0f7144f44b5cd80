// Do boxes cover a shape exactly once? What is left over? Every plan is held against this before
// it is believed.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/tensor/shape.h"

namespace shw {

// Every element of `shape` lies in exactly one box. Empty boxes are passed over. Exact: compares
// the corners of the boxes, with signs, to those of the whole, O(n log n) where few dimensions are
// cut. What a mesh leaves, slices of slices, needs no corners.
bool tiles_exactly(std::span<const Box> boxes, ExtentsView shape);

// No element lies in two boxes, all of which lie inside `shape`.
bool are_disjoint(std::span<const Box> boxes);

// `shape` without the boxes, as disjoint boxes. Nothing where more than `limit` pieces are left.
std::optional<std::vector<Box>> complement(std::span<const Box> boxes, ExtentsView shape,
                                           std::size_t limit = 1'000'000);

// Elements in all boxes together; nothing where that leaves int64.
std::optional<std::int64_t> total_volume(std::span<const Box> boxes);

}  // namespace shw
