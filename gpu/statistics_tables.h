// The count tables on a device: 64-bit words that blocks add to in any order. They give exactly the
// sums of core/tensor/statistics.h.
//
//   1 byte         number of elements per code (256)
//   2, 4, 8 bytes  minimum key (inverted, so that a table begins as zeros) and maximum key;
//                  number of elements per slot: zeros, one per power of two, infinities, NaN, for
//                  each sign; for each group of 32 powers the sums of magnitudes per sign and of
//                  squares, in units of the least power of the group, as words of which each
//                  counts 2^32 of the previous one
//   non-numbers    number of zeros
#pragma once

#include <cstdint>

#include "core/tensor/number_form.h"
#include "core/tensor/statistics.h"

namespace shw {

// Magnitudes have at most `width` bits, powers are below `powers`.
struct NumberShape {
  std::uint32_t width, powers;
};
// The shape for numeric elements of 2, 4 and 8 bytes.
constexpr NumberShape number_shape(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat16:
      return {11, 30};
    case Dtype::kBfloat16:
      return {8, 254};
    case Dtype::kFloat32:
      return {24, 254};
    case Dtype::kFloat64:
      return {53, 2046};
    case Dtype::kInt16:
    case Dtype::kUint16:
      return {16, 1};
    case Dtype::kInt32:
    case Dtype::kUint32:
      return {32, 1};
    default:
      return {64, 1};
  }
}

constexpr std::uint32_t slots_of(NumberShape shape) {  // per sign
  return shape.width + shape.powers - 1 + 3;
}
inline constexpr std::uint32_t kZeroSlot = 0;
constexpr std::uint32_t infinite_slot(NumberShape shape) {
  return slots_of(shape) - 2;
}
constexpr std::uint32_t nan_slot(NumberShape shape) {
  return slots_of(shape) - 1;
}

// Words for sums of 2^16 elements (2^15 of 8 bytes): magnitudes need width + 31 + 16 bits, squares
// 2 * width + 62 + 16; integers are not shifted.
struct SumWords {
  std::uint32_t magnitude, square;
  constexpr std::uint32_t all() const { return 2 * magnitude + square; }
};
constexpr SumWords sum_words(std::size_t size) {
  return size <= 4 ? SumWords{3, 4} : SumWords{4, 6};
}
constexpr std::uint32_t groups_of(NumberShape shape) {
  return (shape.powers + 31) / 32;
}

// Word offsets of the parts of a table, in table order.
struct NumberPlaces {
  std::uint32_t least = 0, greatest = 1, counts = 2, sums = 0, end = 0;
};
constexpr NumberPlaces places_of(NumberShape shape, std::size_t size) {
  NumberPlaces places;
  places.sums = places.counts + 2 * slots_of(shape);
  places.end = places.sums + groups_of(shape) * sum_words(size).all();
  return places;
}

std::uint64_t table_word_count(Dtype dtype);
// For non-numeric dtypes: the bits of 8 bytes that are zero in an element equal to zero.
std::uint64_t magnitude_mask(Dtype dtype);
// Converts a table to sums.
StatisticsSums sums_of_table(Dtype dtype, std::uint64_t elements, const std::uint64_t* words);

}  // namespace shw
