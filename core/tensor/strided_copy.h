// Copies between strided views, and the storage size that a view needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/tensor/layout.h"
#include "core/tensor/shape.h"

namespace shw {

// Number of elements that a storage must hold for this view: the last index + 1, or 0 for an empty
// view. nullopt if a number is negative, ranks differ or on int64 overflow.
std::optional<std::int64_t> storage_needed(ExtentsView sizes, ExtentsView strides,
                                           std::int64_t offset);

// True if the view is contiguous in row-major order.
bool is_row_major(ExtentsView sizes, ExtentsView strides);

// Byte strides of a row-major array.
Extents byte_strides(ExtentsView sizes, std::size_t item_size);

// A copy as a pair of layouts, with strides and offsets in bytes, at most kFoldDims dimensions.
PairDims pair_of(ExtentsView sizes, ExtentsView source_strides, std::int64_t source_offset,
                 ExtentsView target_strides, std::int64_t target_offset);

// Copies the elements (1, 2, 4, 8 or 16 bytes) of a canonical pair. The layouts are relative to
// `source` and `target`; the caller must have checked their bounds.
void copy_elements(const std::byte* source, std::byte* target, const LayoutPair& pair,
                   std::size_t item_size);

// One side of a copy: strides and first element, in elements.
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

// Copies `sizes` elements of 1, 2, 4, 8 or 16 bytes. Both sides must have the size given by
// storage_needed(), which the caller checks before any allocation.
void copy_strided(const StridedSource& source, const StridedTarget& target, ExtentsView sizes,
                  std::size_t item_size);

}  // namespace shw
