// What the numbers of a tensor are like, exactly: sums are whole numbers as wide as it takes, so
// that they add up in any order, on any number of threads and over any tiles, to the same bits. The
// mean and the deviation are made from them once, at the end, and are the doubles nearest to the
// true ones.
//
//   elements   those that were given; nan, infinite, zero (of either sign), denormal of them
//   least,     of all elements that are not NaN, infinities among them, in the order of their
//   greatest   values with -0 below +0
//   mean, std  of the finite elements; std is the population's: divided by their number
//   histogram  of the finite elements that are not zero, by sign and power of two
//
// Whole numbers and bool (0 or 1) are neither NaN nor infinite nor denormal. Of complex, packed,
// quantised and opaque dtypes only elements and zeros are counted.
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

// The elements of one dtype, added up.
struct StatisticsSums {
  explicit StatisticsSums(Dtype of = Dtype::kUnknown) : dtype(of) {}

  Dtype dtype;
  std::uint64_t elements = 0, nan = 0, infinite = 0, denormal = 0, zero = 0;
  // Of the elements that are not NaN, as keys that stand in the order of the values.
  std::uint64_t least = ~std::uint64_t{0}, greatest = 0;
  // Of the finite ones, in units of the smallest number of the dtype, by sign; and of its square.
  std::array<WideInteger, 2> sums;
  WideInteger squares;
  // How many lie in [2^n, 2^(n+1)) units, by sign.
  std::array<std::vector<std::uint64_t>, 2> by_power;

  StatisticsSums& operator+=(const StatisticsSums& other);
  friend bool operator==(const StatisticsSums&, const StatisticsSums&) = default;
};

// `count` elements of these bits, one by one: what is fast is tested against it. Not for dtypes
// wider than 8 bytes.
void add_elements(StatisticsSums& sums, std::uint64_t bits, std::uint64_t count);
// A float's key; NaN has none.
std::uint64_t order_key(Dtype dtype, std::uint64_t bits);

struct PowerBucket {
  int sign = 1;      // or -1
  int exponent = 0;  // 2^exponent <= |x| < 2^(exponent + 1)
  std::uint64_t count = 0;
  friend bool operator==(const PowerBucket&, const PowerBucket&) = default;
};

struct Statistics {
  NumberKind kind = NumberKind::kOpaque;
  std::uint64_t elements = 0, nan = 0, infinite = 0, denormal = 0, zero = 0;
  std::string least, greatest;  // as element_text() writes them; empty where there is none
  std::optional<double> mean, std;
  std::vector<PowerBucket> histogram;  // from the most negative to the most positive
  friend bool operator==(const Statistics&, const Statistics&) = default;
};
Statistics statistics_of(const StatisticsSums& sums);
// Its least and greatest alone, where not all are NaN.
std::pair<std::string, std::string> range_text(const StatisticsSums& sums);

}  // namespace shw
