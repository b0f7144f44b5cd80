// Statistics per tile of a tensor: number of non-finite elements, greatest
// magnitude, number of zeros. Computed in batches, so that partial results can be
// drawn.
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
  // Greatest magnitude except NaN, including infinities; negative if there is none.
  double greatest = -1;
  State state = State::kNotLooked;
};

struct TileValues {
  TensorId tensor{};
  std::vector<TileNumbers> tiles;  // one per chunk, in order
  std::uint32_t done = 0;          // number of leading tiles that are complete
  std::uint32_t unread = 0;        // of those
  std::uint64_t bytes = 0;         // total bytes to read
  bool has_numbers = true;         // false: only zeros are counted for this dtype
  std::optional<Error> error;      // first read error
  bool is_complete() const { return done == tiles.size(); }
};

// Total bytes to read: a sum over tiles, 90 ms for a million.
std::uint64_t tile_value_bytes(const Checkpoint& checkpoint, TensorId tensor);
// All tiles, none examined.
TileValues unexamined_tiles(const Checkpoint& checkpoint, TensorId tensor);
// Examines the next tiles: about 64 MiB, at least one. Only cancellation is an error.
Status read_further_tiles(const Checkpoint& checkpoint, TileValues& values, Progress* progress);

}  // namespace shw::verbs
