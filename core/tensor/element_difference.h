// Differences between two runs of elements, by bits and by value. All
// counts may be added in any order; only the product sums depend on
// the order, so equal elements split into equal parts give equal
// bits.
//
//   differing   elements with different bits: NaN equals itself, 0.0 is not -0.0
//   bits_only   of those, elements with equal values: 0.0 and -0.0, two NaNs, two non-zero bools
//   nan         of those, elements where exactly one side is NaN: they have no distance
//   max_abs     the largest |a - b| as double; for integers it is exact in max_whole
//   beyond      of those, elements further apart than a tolerance, if one is given
//   max_ulp     the largest number of representable values between a and b, for floats of one
//               dtype; infinity follows the largest number, -0.0 and 0.0 count as one
//
// Complex, packed, quantised and opaque dtypes have only `differing`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/tensor/dtype.h"

namespace shw {

struct ElementDifference {
  std::uint64_t differing = 0, bits_only = 0, nan = 0;
  double max_abs = 0;
  std::uint64_t max_whole = 0;  // for integers of one dtype
  std::uint64_t max_ulp = 0;
  std::uint64_t beyond = 0;
  std::optional<std::uint64_t> first = {};  // index of the first differing element

  // Adds the counts of a later part, whose elements begin at index `begin`.
  void add(const ElementDifference& other, std::uint64_t begin);
};

// Product sums over the elements that are finite in both; used for the cosine similarity.
struct ElementProducts {
  double ab = 0, aa = 0, bb = 0;
  ElementProducts& operator+=(const ElementProducts& other);
  // nullopt if one side is all zeros or a sum overflows.
  std::optional<double> cosine() const;
};

// Compares `count` elements of one dtype of known size. If `products` is not null, the sums of
// products_of() are added to it.
ElementDifference difference_of(Dtype dtype, const std::byte* a, const std::byte* b,
                                std::size_t count, ElementProducts* products = nullptr);
// Compares different dtypes by value: an element differs if the values differ; bits are not
// compared. Requires can_compare().
ElementDifference difference_of(Dtype a_dtype, const std::byte* a, Dtype b_dtype,
                                const std::byte* b, std::size_t count);
// |a - b| <= absolute + relative * |b|, as in torch.allclose and numpy. Two NaNs are equal, and so
// is an infinity and itself.
struct Tolerance {
  double absolute = 0, relative = 0;
};
// The number of elements that are further apart. Elements of opaque dtypes do if their bits differ.
std::uint64_t count_beyond_tolerance(const Tolerance& tolerance, Dtype a_dtype, const std::byte* a,
                                     Dtype b_dtype, const std::byte* b, std::size_t count);

// True if both dtypes are numbers that a double represents exactly.
bool can_compare(Dtype a, Dtype b);

// Product sums of numeric dtypes; adds nothing for other dtypes.
ElementProducts products_of(Dtype a_dtype, const std::byte* a, Dtype b_dtype, const std::byte* b,
                            std::size_t count);

// Number of representable values between two codes of a float dtype; -0.0 and 0.0 count as one.
std::uint64_t ulps_between(Dtype dtype, std::uint64_t a, std::uint64_t b);

}  // namespace shw
