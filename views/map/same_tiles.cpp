#include "views/map/same_tiles.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>

namespace shw {
namespace {

bool is_in_slice(const TileSet& tiles, std::uint32_t tile, const Slice& slice) {
  for (std::size_t d = 0; d < tiles.ndim(); ++d) {
    const std::int64_t inside = slice.at[d] - tiles.offset(tile, d);
    if (!slice.shows(d) && (inside < 0 || inside >= tiles.extent(tile, d))) return false;
  }
  return true;
}

}  // namespace

std::optional<std::uint32_t> tile_at(const TileSet& from, const Slice& slice, double row,
                                     double column) {
  if (slice.at.size() != from.ndim()) return std::nullopt;
  Extents point = slice.at;
  auto set = [&](int dim, double at) {
    if (dim < 0) return;
    const auto d = static_cast<std::size_t>(dim);
    const auto last = static_cast<double>(std::max<std::int64_t>(from.shape()[d] - 1, 0));
    point[d] = static_cast<std::int64_t>(std::clamp(std::floor(at), 0.0, last));
  };
  set(slice.row, row);
  set(slice.column, column);
  return from.find(point);
}

TileShift shift_to_same_tile(const TileSet& from, std::uint32_t tile, const TileSet& to,
                             const Slice& slice) {
  if (to.ndim() != from.ndim() || slice.at.size() != to.ndim()) return {};
  for (std::uint32_t other = 0; other < to.size(); ++other) {
    const bool is_same =
        to.chunk(other) == ChunkId::kNone
            ? to.writer(other) == from.writer(tile) && from.writer(tile) != kNoWriter
            : to.chunk(other) == from.chunk(tile);
    if (!is_same || !is_in_slice(to, other, slice)) continue;
    auto along = [&](int dim) {
      if (dim < 0) return 0.0;
      const auto d = static_cast<std::size_t>(dim);
      return static_cast<double>(to.offset(other, d) - from.offset(tile, d));
    };
    return {along(slice.row), along(slice.column), true};
  }
  return {};
}

const TileShift& TileShifts::find(const TileSet& from, std::uint32_t tile, const TileSet& to,
                                  const Slice& slice, std::size_t picture) {
  assert(picture < std::size(known_));
  Known& known = known_[picture];
  if (known.from != &from || known.to != &to || known.tile != tile || !(known.slice == slice))
    known = {&from, &to, tile, slice, shift_to_same_tile(from, tile, to, slice)};
  return known.shift;
}

}  // namespace shw
