// Where in the reference the bytes of each saved tile lie (spec/failures.md P19, for whole tiles):
// at its own place, at another one, or nowhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/facts/check_input.h"

namespace shw {

enum class PlacesAnswer : std::uint8_t {
  kUnread,     // nothing can be said
  kInPlace,    // every tile holds what the reference has at its place
  kExchanged,  // every tile is found, and they fill the tensor: `boxes` says how
  kPartly,     // some tiles are found at another place, others nowhere
  kStrange,    // no tile that is not in its place is found anywhere else
};

struct TileMove {
  Box recorded;  // with the sizes of the item
  Box found;     // where the reference has these elements
};

// A tile that says something, so few values as it may have, and that is not what the reference has
// at its place: by the first 4 KiB.
struct StrangeTile {
  std::size_t chunk = 0;      // among the tensor's
  std::string holds, wanted;  // hashes of what begins the tile and its place; `wanted` may be empty
};

struct TilePlaces {
  PlacesAnswer answer = PlacesAnswer::kUnread;
  bool sampled = false;  // kInPlace, by the first 4 KiB of each tile
  bool rounded = false;  // compared in the narrower of two dtypes
  // False: so few different values that the order may be chance. Of kExchanged and kPartly.
  bool telling = false;
  // kStrange: the least margin of order_by_likeness, where that says how the tiles lie; else 0.
  double likeness = 0;
  // kExchanged, and where likeness says how: one a chunk, the order of the tensor's chunks
  std::vector<Box> boxes;
  std::vector<TileMove> moves;  // all that moved; kPartly: those that are found once
  std::int64_t tiles = 0;
  std::int64_t nowhere = 0;  // kPartly: tiles whose elements the reference has at no tile's place
  std::int64_t doubled = 0;  // kPartly: found where another tile stands that holds them rightly
  // kPartly, kStrange: of those tiles that say something.
  std::vector<std::size_t> right;  // in place, by number among the tensor's chunks
  std::vector<StrangeTile> strange;
};

// `every_byte`: tiles whose first 4 KiB are in place are read to the end as well. Tiles that hold
// the same stay where they are, or go to any place that wants it: the result is the same bytes.
TilePlaces find_places(const CheckInput& input, TensorId tensor, TensorId other, bool every_byte);

// Of items that each side of one search keeps decoded: half of the memory is that of all threads.
std::uint64_t decoded_for_places(const CheckInput& input);

}  // namespace shw
