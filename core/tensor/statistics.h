// Exact statistics of a tensor. Sums are integers of unlimited width, so that parts
// add up in any order, over any threads and chunks, to equal bits. Mean and
// deviation are computed once at the end and are the doubles nearest to the exact
// results.
//
//   elements   count; also nan, infinite, zero (of either sign) and denormal elements
//   least,     minimum and maximum over all elements that are not NaN, infinities included;
//   greatest   -0 is below +0
//   mean, std  over finite elements; std is the population's, divided by their number
//   histogram  of finite non-zero elements, by sign and power of two
//
// Integers and bool (0 or 1) are never NaN, infinite or denormal. For complex,
// packed, quantised and opaque dtypes only elements and zeros are counted.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor/dtype.h"
#include "core/tensor/wide_integer.h"

namespace shw {

enum class NumberKind : std::uint8_t { kFloat, kInteger, kOpaque };
NumberKind number_kind(Dtype dtype);

// Running sums for elements of one dtype.
struct StatisticsSums {
  explicit StatisticsSums(Dtype of = Dtype::kUnknown) : dtype(of) {}

  Dtype dtype;
  std::uint64_t elements = 0, nan = 0, infinite = 0, denormal = 0, zero = 0;
  // Minimum and maximum without NaN, as keys in value order (order_key).
  std::uint64_t least = ~std::uint64_t{0}, greatest = 0;
  // Sums of the finite elements by sign, and of squares, in units of the dtype's smallest number.
  std::array<WideInteger, 2> sums;
  WideInteger squares;
  // Number of elements in [2^n, 2^(n+1)) units, by sign.
  std::array<std::vector<std::uint64_t>, 2> by_power;

  StatisticsSums& operator+=(const StatisticsSums& other);
  friend bool operator==(const StatisticsSums&, const StatisticsSums&) = default;
};

// Adds `count` elements with equal bits: the reference that fast counters are tested against. Only
// for dtypes up to 8 bytes.
void add_elements(StatisticsSums& sums, std::uint64_t bits, std::uint64_t count);
// Maps a float to an integer in value order; undefined for NaN.
std::uint64_t order_key(Dtype dtype, std::uint64_t bits);

struct PowerBucket {
  int sign = 1;      // 1 or -1
  int exponent = 0;  // 2^exponent <= |x| < 2^(exponent + 1)
  std::uint64_t count = 0;
  friend bool operator==(const PowerBucket&, const PowerBucket&) = default;
};

struct Statistics {
  NumberKind kind = NumberKind::kOpaque;
  std::uint64_t elements = 0, nan = 0, infinite = 0, denormal = 0, zero = 0;
  std::string least, greatest;  // formatted by element_text(); empty if there is no value
  std::optional<double> mean, std;
  std::vector<PowerBucket> histogram;  // from the most negative to the most positive bucket
  friend bool operator==(const Statistics&, const Statistics&) = default;
};
Statistics statistics_of(const StatisticsSums& sums);
// Minimum and maximum as text; requires an element that is not NaN.
std::pair<std::string, std::string> range_text(const StatisticsSums& sums);

}  // namespace shw
