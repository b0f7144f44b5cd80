// Storage records of chunks that are missing from their tensor's chunk list. The record gives
// the chunk's offset, its item the size; determines which records fill the gaps of the listed
// chunks.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/facts/check_input.h"

namespace shw {

struct UnlistedTiles {
  std::vector<UnlistedChunks>
      tensors;                   // tensors that are complete with these chunks, each used once
  std::set<TensorId> misplaced;  // those that list such chunks without a record
  std::set<std::size_t> placed;  // indices in unclaimed_records() of the chunks in `tensors`
  std::map<std::size_t, std::string> why_not;  // other records of existing tensors, with the reason
};

// Empty if no headers were read.
UnlistedTiles find_unlisted_tiles(const CheckInput& input);

}  // namespace shw
