// Arranges chunks of known sizes to fill a shape.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "core/tensor/shape.h"

namespace shw {

// Interchangeable chunks: equal size and content.
struct TileKind {
  Extents sizes;
  std::vector<std::size_t> tiles;  // any of them may be used
};

// Assigns a box to every chunk of `kinds` so that these and `fixed` fill `shape` exactly, and
// `fits` accepts every pair of kind and box. Works corner by corner: the first uncovered element is
// the first element of some chunk, so `fits` is called for few positions. Results by chunk number;
// nullopt if there is no solution, or none within kMaxSteps.
inline constexpr std::size_t kMaxSteps = 20'000;
using Fits = std::function<bool(std::size_t kind, const Box& box)>;
std::optional<std::vector<std::pair<std::size_t, Box>>> put_together(const Extents& shape,
                                                                     const std::vector<Box>& fixed,
                                                                     std::vector<TileKind> kinds,
                                                                     const Fits& fits);

// The first uncovered element of `shape` in row-major order; nullopt if all are covered.
std::optional<Extents> first_uncovered_element(const Extents& shape, const std::vector<Box>& boxes);

}  // namespace shw
