#include "core/tensor/transpose_plane.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <utility>

namespace shw {
namespace {

constexpr std::int64_t kVector = 16;  // vector width in bytes that all processors have

template <class Item>
struct VectorOf {
  typedef Item Type __attribute__((vector_size(kVector)));
};
template <class Item>
using Vector = typename VectorOf<Item>::Type;

// Interleaves the lower, or the upper, halves of two vectors.
template <class Item, std::size_t... I>
[[gnu::always_inline]] inline Vector<Item> zipped_low(Vector<Item> a, Vector<Item> b,
                                                      std::index_sequence<I...>) {
  return __builtin_shufflevector(a, b, (I / 2 + I % 2 * sizeof...(I))...);
}
template <class Item, std::size_t... I>
[[gnu::always_inline]] inline Vector<Item> zipped_high(Vector<Item> a, Vector<Item> b,
                                                       std::index_sequence<I...>) {
  return __builtin_shufflevector(a, b, ((I + sizeof...(I)) / 2 + I % 2 * sizeof...(I))...);
}

// Transposes a square with one row per vector element. Interleaving row i with row i + half doubles
// the number of adjacent elements of a column; after log2(count) rounds each row is a column.
template <class Item>
[[gnu::always_inline]] inline void transpose_in_registers(const std::byte* source,
                                                          std::int64_t source_stride,
                                                          std::byte* target,
                                                          std::int64_t target_stride) {
  constexpr std::size_t kCount = kVector / sizeof(Item);
  constexpr auto kEach = std::make_index_sequence<kCount>();
  Vector<Item> rows[kCount], next[kCount];
  for (std::size_t i = 0; i < kCount; ++i)
    std::memcpy(&rows[i], source + static_cast<std::int64_t>(i) * source_stride, kVector);
  for (std::size_t in_place = 1; in_place < kCount; in_place *= 2) {
    for (std::size_t i = 0; i < kCount / 2; ++i) {
      next[2 * i] = zipped_low<Item>(rows[i], rows[i + kCount / 2], kEach);
      next[2 * i + 1] = zipped_high<Item>(rows[i], rows[i + kCount / 2], kEach);
    }
    std::copy(next, next + kCount, rows);
  }
  for (std::size_t i = 0; i < kCount; ++i)
    std::memcpy(target + static_cast<std::int64_t>(i) * target_stride, &rows[i], kVector);
}

template <class Item>
void transpose_elements(const std::byte* source, std::byte* target, const PairDim& rows,
                        const PairDim& columns) {
  for (std::int64_t r = 0; r < rows.size; ++r) {
    for (std::int64_t c = 0; c < columns.size; ++c)
      std::memcpy(target + r * rows.target + c * columns.target,
                  source + r * rows.source + c * columns.source, sizeof(Item));
  }
}

PairDim first_of(const PairDim& dim, std::int64_t size) {
  return {size, dim.source, dim.target};
}

// The remainder next to whole vectors is copied element by element.
template <class Item>
void transpose_squares(const std::byte* source, std::byte* target, const PairDim& rows,
                       const PairDim& columns) {
  constexpr std::int64_t kCount = kVector / std::int64_t{sizeof(Item)};
  std::int64_t whole_rows = rows.size / kCount * kCount;
  std::int64_t whole_columns = columns.size / kCount * kCount;
  for (std::int64_t r = 0; r < whole_rows; r += kCount) {
    for (std::int64_t c = 0; c < whole_columns; c += kCount)
      transpose_in_registers<Item>(source + r * rows.source + c * columns.source, columns.source,
                                   target + r * rows.target + c * columns.target, rows.target);
  }
  transpose_elements<Item>(source + whole_columns * columns.source,
                           target + whole_columns * columns.target, first_of(rows, whole_rows),
                           first_of(columns, columns.size - whole_columns));
  transpose_elements<Item>(source + whole_rows * rows.source, target + whole_rows * rows.target,
                           first_of(rows, rows.size - whole_rows), columns);
}

// Prefetches the next square on both sides while the current one is transposed: rows are on
// different pages, which hardware prefetchers do not follow.
void prefetch_square(const std::byte* source, std::byte* target, const PairDim& rows,
                     const PairDim& columns, std::int64_t row_bytes) {
  constexpr std::int64_t kLine = 64;
  for (std::int64_t i = 0; i < columns.size; ++i) {
    for (std::int64_t byte = 0; byte < row_bytes; byte += kLine) {
      __builtin_prefetch(source + i * columns.source + byte, 0);
      __builtin_prefetch(target + i * rows.target + byte, 1);
    }
  }
}

template <class Item>
void turn(const std::byte* source, std::byte* target, const PairDim& rows, const PairDim& columns) {
  // Cache lines and pages of both sides stay in the first-level cache.
  constexpr std::int64_t kSquare = 64, kBytes = kSquare * std::int64_t{sizeof(Item)};
  for (std::int64_t r = 0; r < rows.size; r += kSquare) {
    const PairDim across = first_of(rows, std::min(kSquare, rows.size - r));
    for (std::int64_t c = 0; c < columns.size; c += kSquare) {
      const std::byte* from = source + r * rows.source + c * columns.source;
      std::byte* to = target + r * rows.target + c * columns.target;
      const PairDim along = first_of(columns, std::min(kSquare, columns.size - c));
      if (across.size == kSquare && c + 2 * kSquare <= columns.size)
        prefetch_square(from + kSquare * columns.source, to + kSquare * columns.target, across,
                        along, kBytes);
      transpose_squares<Item>(from, to, across, along);
    }
  }
}

}  // namespace

bool is_turned(const PairDim& rows, const PairDim& columns, std::size_t item_size) {
  auto item = static_cast<std::int64_t>(item_size);
  return item_size <= 4 && rows.source == item && columns.target == item &&
         columns.source >= item && rows.target >= item;
}

void transpose_plane(const std::byte* source, std::byte* target, const PairDim& rows,
                     const PairDim& columns, std::size_t item_size) {
  assert(is_turned(rows, columns, item_size));
  switch (item_size) {
    case 1:
      return turn<std::uint8_t>(source, target, rows, columns);
    case 2:
      return turn<std::uint16_t>(source, target, rows, columns);
    default:
      return turn<std::uint32_t>(source, target, rows, columns);
  }
}

}  // namespace shw
