// Searches the reference for the bytes of each saved chunk: found in place, at another place, or
// not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/facts/check_input.h"

namespace shw {

enum class PlacesAnswer : std::uint8_t {
  kUnread,          // could not be read
  kInPlace,         // every chunk equals the reference at its place
  kExchanged,       // all chunks are found and fill the tensor: see `boxes`
  kPartly,          // some chunks are found elsewhere, others not at all
  kForeignContent,  // no displaced chunk is found anywhere
};

struct TileMove {
  Box recorded;  // with the sizes of the item
  Box found;     // place of these elements in the reference
};

// A chunk with enough distinct values that differs from the reference at its place, checked by the
// first 4 KiB.
struct UnmatchedTile {
  std::size_t chunk = 0;      // index in the tensor
  std::string holds, wanted;  // hashes of the begin of chunk and place; `wanted` may be empty
};

struct TilePlaces {
  PlacesAnswer answer = PlacesAnswer::kUnread;
  bool sampled = false;  // kInPlace, checked by the first 4 KiB of each chunk
  bool rounded = false;  // compared in the narrower of two dtypes
  // False: too few distinct values to exclude chance. For kExchanged and kPartly.
  bool telling = false;
  // kForeignContent: the least margin of match_by_correlation if that finds the places; else
  // 0.
  double likeness = 0;
  // Set if kExchanged, or if correlation found the places: one box per chunk, in chunk order.
  std::vector<Box> boxes;
  std::vector<TileMove> moves;  // all displaced chunks; kPartly: those with one match
  std::int64_t tiles = 0;
  std::int64_t nowhere = 0;  // kPartly: chunks that are at no chunk's place in the reference
  std::int64_t doubled = 0;  // kPartly: found at the place of a chunk that is in place
  // kPartly, kForeignContent: chunks with enough distinct values.
  std::vector<std::size_t> right;  // in place, by index in the tensor
  std::vector<UnmatchedTile> strange;
};

// `every_byte`: chunks whose first 4 KiB are in place are compared to the end. Chunks of equal
// contents stay in place or fill any place that needs them.
TilePlaces find_tile_places(const CheckInput& input, TensorId tensor, TensorId other,
                            bool every_byte);

// Memory for decoded items per side of a search: half of the limit, divided by threads.
std::uint64_t decode_budget_per_side(const CheckInput& input);

}  // namespace shw
