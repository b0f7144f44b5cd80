// Where the elements of a strided view lie, and copying between two such views.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/tensor/shape.h"

namespace shw {

// Elements that a storage must hold for this view: the last one's index + 1, or 0 for an empty
// view. Nothing where a size, stride or offset is negative, ranks differ, or a sum leaves int64.
std::optional<std::int64_t> storage_needed(ExtentsView sizes, ExtentsView strides,
                                           std::int64_t offset);

// True where the view's elements lie one after the other in row-major order.
bool is_row_major(ExtentsView sizes, ExtentsView strides);

// One side of a copy: strides and the offset of the first element, in elements.
struct StridedSource {
  std::span<const std::byte> bytes;
  ExtentsView strides;
  std::int64_t offset = 0;
};
struct StridedTarget {
  std::span<std::byte> bytes;
  ExtentsView strides;
  std::int64_t offset = 0;
};

// Copies `sizes` elements of `item_size` bytes (1, 2, 4, 8 or 16). Both sides must hold what
// storage_needed() says; that is checked by the caller, before anything is allocated.
void copy_strided(const StridedSource& source, const StridedTarget& target, ExtentsView sizes,
                  std::size_t item_size);

}  // namespace shw
