// What lies between two runs of elements, value by value and bit by bit. Everything but the sums of
// products adds up in any order; those are made in the order of the elements, so that the same
// elements in the same parts come to the same bits.
//
//   differing   elements whose bits differ: NaN equals itself, 0.0 is not -0.0
//   bits_only   of them, those that are one value nevertheless: 0.0 and -0.0, two NaN, two bytes
//               that are both true
//   nan         of them, those of which one is NaN and the other is not: no distance says them
//   max_abs     the largest |a - b|, in double; of whole numbers it is exact in max_whole
//   max_ulp     the most representable numbers from one to the other, of floats of one dtype;
//               infinity is the one after the largest, and -0.0 and 0.0 are one
//
// Of complex, packed, quantised and opaque dtypes only `differing` is counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/tensor/dtype.h"

namespace shw {

struct ElementDifference {
  std::uint64_t differing = 0, bits_only = 0, nan = 0;
  double max_abs = 0;
  std::uint64_t max_whole = 0;  // of whole numbers of one dtype
  std::uint64_t max_ulp = 0;
  std::optional<std::uint64_t> first = {};  // the first that differs, counted from the begin

  // `begin`: where the other's elements begin.
  void add(const ElementDifference& other, std::uint64_t begin);
};

// Sums over the elements that are finite in both: what the cosine is made of.
struct ElementProducts {
  double ab = 0, aa = 0, bb = 0;
  ElementProducts& operator+=(const ElementProducts& other);
  // Nothing where one of them is all zeros, or a sum is too large to be said.
  std::optional<double> cosine() const;
};

// Two runs of `count` elements of one dtype; its size is known. `products`: added to, where it is
// asked for; the sums are those of products_of().
ElementDifference difference_of(Dtype dtype, const std::byte* a, const std::byte* b,
                                std::size_t count, ElementProducts* products = nullptr);
// The same where the dtypes differ: by value. An element differs where the values do, and bits are
// not spoken of. can_compare() holds.
ElementDifference difference_of(Dtype a_dtype, const std::byte* a, Dtype b_dtype,
                                const std::byte* b, std::size_t count);
// Both are numbers, and a double holds every one of them.
bool can_compare(Dtype a, Dtype b);

// Of dtypes with numbers; nothing is added of others.
ElementProducts products_of(Dtype a_dtype, const std::byte* a, Dtype b_dtype, const std::byte* b,
                            std::size_t count);

// How many numbers of a float dtype lie between two of its codes; -0.0 and 0.0 are one of them.
std::uint64_t steps_between(Dtype dtype, std::uint64_t a, std::uint64_t b);

}  // namespace shw
