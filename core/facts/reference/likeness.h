// Similarity of numbers after further training: the correlation, which is invariant to shift and
// scale.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/tensor/shape.h"

namespace shw {

inline constexpr double kLikeItsPlace = 0.5;  // at least this correlation with its best match
// At least this correlation in each part: one matching half alone gives 0.5 overall.
inline constexpr double kMinPartCorrelation = 0.25;
inline constexpr std::size_t kParts = 16;  // parts compared, from first to last element

// A margin of six standard deviations of what unrelated numbers give, but at least `least`.
inline double required_margin_of(double least, double deviation) {
  return std::max(least, 6 * deviation);
}
// Required margin between the best and the second-best match. The correlation of unrelated rows of
// n elements has standard deviation 1 / sqrt(n): the margin is 0.6 for 100 elements, 0.2 for 900.
inline double required_margin(std::size_t elements) {
  return required_margin_of(0.2, 1 / std::sqrt(static_cast<double>(elements)));
}

// Shifts and scales to sum 0 and sum of squares 1, so that dot products are correlations. False if
// all values are equal or one is not finite.
bool standardise_to_unit_length(std::span<float> row);
double dot_product(std::span<const float> a, std::span<const float> b);

// Part `which` of kParts of a box of `sizes`: about that many elements, extended along the last
// dims, spread evenly from corner to corner. Spans all of `whole_dim`, if given, whose elements do
// not count.
inline constexpr std::size_t kNoDim = SIZE_MAX;
// Reads the values of a box; nullopt if they cannot be read.
using ReadPart = std::function<std::optional<std::vector<float>>(const Box& inside)>;
// True if two tensors of these sizes are similar in all parts and not only at the begin: a chunk
// can consist of two blocks that belong to different places.
bool correlates_in_parts(ExtentsView sizes, const ReadPart& here, const ReadPart& there);
inline std::int64_t elements_of_part(std::int64_t all) {
  constexpr std::int64_t kLeast = 64, kMost = 256;
  return std::clamp(all / 8, kLeast, kMost);
}
Box part_inside(ExtentsView sizes, std::int64_t elements, std::size_t which,
                std::size_t whole_dim = kNoDim);

}  // namespace shw
