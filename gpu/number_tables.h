// What a slab's numbers are counted in on a device: words of 64 bits that blocks add to in any
// order, to the sums that core/tensor/statistics.h keeps, to the bit.
//
//   of 1 byte      how often each of the 256 codes came
//   of 2, 4, 8     the least key (upside down, so that a table begins as zeros) and the greatest;
//                  how many elements lie in each slot: zeros, then by power of two, infinities,
//                  NaN, for either sign; and of each 32 powers the sums of magnitudes, for either
//                  sign, and of squares, in units of the smallest power of them: words of which
//                  each counts 2^32 of the one before
//   no numbers     how many are zeros
#pragma once

#include <cstdint>

#include "core/tensor/number_form.h"
#include "core/tensor/statistics.h"

namespace shw {

// Magnitudes have at most `width` bits and powers lie below `powers`.
struct NumberShape {
  std::uint32_t width, powers;
};
// Of elements of 2, 4 and 8 bytes that are numbers.
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

constexpr std::uint32_t slots_of(NumberShape shape) {  // of one sign
  return shape.width + shape.powers - 1 + 3;
}
inline constexpr std::uint32_t kZeroSlot = 0;
constexpr std::uint32_t infinite_slot(NumberShape shape) {
  return slots_of(shape) - 2;
}
constexpr std::uint32_t nan_slot(NumberShape shape) {
  return slots_of(shape) - 1;
}

// A sum of 2^16 elements, or of 2^15 of 8 bytes: of magnitudes width + 31 + 16 bits, of squares
// 2 * width + 62 + 16; of whole numbers nothing is shifted.
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

// In this order.
struct NumberPlaces {
  std::uint32_t least = 0, greatest = 1, counts = 2, sums = 0, end = 0;
};
constexpr NumberPlaces places_of(NumberShape shape, std::size_t size) {
  NumberPlaces places;
  places.sums = places.counts + 2 * slots_of(shape);
  places.end = places.sums + groups_of(shape) * sum_words(size).all();
  return places;
}

std::uint64_t words_of_table(Dtype dtype);
// Of dtypes that are no numbers: the bits of 8 bytes of them that are not those of zeros.
std::uint64_t magnitude_mask(Dtype dtype);
// What a table says.
StatisticsSums sums_of_table(Dtype dtype, std::uint64_t elements, const std::uint64_t* words);

}  // namespace shw
