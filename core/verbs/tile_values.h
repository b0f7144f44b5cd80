// What the numbers of every tile of a tensor are like: how many are not finite, how large the
// largest, how many are zero. Taken a batch of tiles at a time, so that what is known so far can be
// drawn and the rest is known not to have been looked at.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/model/checkpoint.h"

namespace shw::verbs {

struct TileNumbers {
  enum class State : std::uint8_t { kNotLooked, kLooked, kUnread };
  std::uint64_t elements = 0, nan = 0, infinite = 0, zero = 0;
  // Of those that are not NaN, infinities among them; negative where there is none.
  double greatest = -1;
  State state = State::kNotLooked;
};

struct TileValues {
  TensorId tensor{};
  std::vector<TileNumbers> tiles;  // one a chunk, in the order of the tensor's
  std::uint32_t done = 0;          // of them, from the first on
  std::uint32_t unread = 0;        // of those
  std::uint64_t bytes = 0;         // that looking at all of them reads
  bool has_numbers = true;         // false: of its dtype only the zeros can be counted
  std::optional<Error> error;      // the first of what could not be read
  bool is_complete() const { return done == tiles.size(); }
};

// That looking at all of them reads: a sum over tiles, 90 ms of a million.
std::uint64_t tile_value_bytes(const Checkpoint& checkpoint, TensorId tensor);
// All tiles and none of them looked at.
TileValues untouched_tiles(const Checkpoint& checkpoint, TensorId tensor);
// The next tiles: about 64 MiB of them, one at least. An error only where somebody stopped it.
Status look_further(const Checkpoint& checkpoint, TileValues& values, Progress* progress);

}  // namespace shw::verbs
