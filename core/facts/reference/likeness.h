// Numbers that are like others though training has changed them all (spec/failures.md P19, trained
// models): their correlation, which a common shift or scale does not change.
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

inline constexpr double kLikeItsPlace = 0.5;  // what is as like its own place as that is in it
// Of what is like a place, every part is: half a tile alone brings the whole of it to 0.5.
inline constexpr double kLikeInParts = 0.25;
inline constexpr std::size_t kParts = 16;  // that are looked at, from its first element to its last

// By how much more it has to be like one place than any other. The correlation of unrelated rows of
// n elements has a standard deviation of 1 / sqrt(n): six of them are asked for, 0.6 with 100
// elements and 0.2 with 900.
inline double asked_margin(std::size_t elements) {
  constexpr double kLeastMargin = 0.2, kAskedDeviations = 6;  // the first is P19's
  return std::max(kLeastMargin, kAskedDeviations / std::sqrt(static_cast<double>(elements)));
}

// Shifted and scaled until their sum is 0 and their squares sum to 1: a product of two such rows is
// their correlation. False where all are equal, or one is not finite.
bool standardise(std::span<float> row);
double product_of(std::span<const float> a, std::span<const float> b);

// Part `which` of kParts of a box of `sizes`: so many elements of it or some more, as many as can
// be along the last dimensions, the parts spread evenly from corner to corner. All along
// `whole_dim`, whose elements do not count, where there is one.
inline constexpr std::size_t kNoDim = SIZE_MAX;
// The numbers of a box inside of something; nothing where they cannot be read.
using ReadPart = std::function<std::optional<std::vector<float>>(const Box& inside)>;
// Whether what begins like another thing of these sizes is like it to its end: a tile can be of two
// blocks, each of which belongs to another place.
bool is_like_in_parts(ExtentsView sizes, const ReadPart& here, const ReadPart& there);
inline std::int64_t elements_of_part(std::int64_t all) {
  constexpr std::int64_t kLeast = 64, kMost = 256;
  return std::clamp(all / 8, kLeast, kMost);
}
Box part_inside(ExtentsView sizes, std::int64_t elements, std::size_t which,
                std::size_t whole_dim = kNoDim);

}  // namespace shw
