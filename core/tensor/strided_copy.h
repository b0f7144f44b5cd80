// Copying between two views of memory, and what a view that a file announces needs of its storage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/tensor/layout.h"
#include "core/tensor/shape.h"

namespace shw {

// Elements that a storage must hold for this view: the last one's index + 1, or 0 for an empty
// view. Nothing where a size, stride or offset is negative, ranks differ, or a sum leaves int64.
std::optional<std::int64_t> storage_needed(ExtentsView sizes, ExtentsView strides,
                                           std::int64_t offset);

// True where the view's elements lie one after the other in row-major order.
bool is_row_major(ExtentsView sizes, ExtentsView strides);

// Strides in bytes of a row-major array.
Extents byte_strides(ExtentsView sizes, std::size_t item_size);

// A copy as a pair of layouts; strides and offsets in bytes, at most kFoldDims of them.
PairDims pair_of(ExtentsView sizes, ExtentsView source_strides, std::int64_t source_offset,
                 ExtentsView target_strides, std::int64_t target_offset);

// Copies elements of `item_size` bytes (1, 2, 4, 8 or 16) of a canonical pair. The layouts count
// from `source` and `target`; the caller has checked what they reach.
void copy_elements(const std::byte* source, std::byte* target, const LayoutPair& pair,
                   std::size_t item_size);

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
