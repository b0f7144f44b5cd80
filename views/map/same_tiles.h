// Keeps zoomed pictures of one tensor on one tile, wherever each picture has it.
#pragma once

#include <cstdint>
#include <optional>

#include "core/tiles/slice.h"
#include "core/tiles/tile_set.h"

namespace shw {

// The distance of a tile from where it is in one picture to where it is in another.
struct TileShift {
  double row = 0, column = 0;
  bool is_known = false;  // false: the other picture does not show the tile
};

// The tile of `from` at an element of the slice.
std::optional<std::uint32_t> tile_at(const TileSet& from, const Slice& slice, double row,
                                     double column);
// To the tile of `to` that holds the same chunk; if the tiles of `to` are of no chunk, that is of
// the same rank. Looks at every tile of `to`.
TileShift shift_to_same_tile(const TileSet& from, std::uint32_t tile, const TileSet& to,
                             const Slice& slice);

// The last shift per picture, so that tiles are searched only when another one is in the middle.
class TileShifts {
 public:
  const TileShift& find(const TileSet& from, std::uint32_t tile, const TileSet& to,
                        const Slice& slice, std::size_t picture);

 private:
  struct Known {
    const TileSet *from = nullptr, *to = nullptr;  // compared only
    std::uint32_t tile = 0;
    Slice slice;
    TileShift shift;
  };
  Known known_[3];
};

}  // namespace shw
