// Tiles of known sizes put together to a whole: which box does each of them get?
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "core/tensor/shape.h"

namespace shw {

// Tiles that look alike: of one size, and one content.
struct TileKind {
  Extents sizes;
  std::vector<std::size_t> tiles;  // any of them serves
};

// A box for every tile of `kinds` such that all together, with the boxes of `fixed`, fill `shape`
// exactly, and `fits` said yes to every kind and box. Corner by corner: the first element that
// nothing covers is the first one of some tile, so `fits` is asked of few places. Nothing where
// there is no way, or none was found in kMostSteps. The answer is by tile number.
inline constexpr std::size_t kMostSteps = 20'000;
using Fits = std::function<bool(std::size_t kind, const Box& box)>;
std::optional<std::vector<std::pair<std::size_t, Box>>> put_together(const Extents& shape,
                                                                     const std::vector<Box>& fixed,
                                                                     std::vector<TileKind> kinds,
                                                                     const Fits& fits);

// The first element of `shape`, row by row, that no box covers; nothing where all are covered.
std::optional<Extents> first_gap(const Extents& shape, const std::vector<Box>& boxes);

}  // namespace shw
