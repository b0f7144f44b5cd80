// How the memory that a run may take is dealt out among those who need it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/exec/decoded_places.h"
#include "core/exec/write_blocks.h"

namespace shw {

struct MemoryShares {
  Limits limits;                    // of each thread's slabs
  std::uint64_t decoded_bytes = 0;  // of DecodedItems
  DecodedPlaces decoded;            // what has no room there
  // Of what a worker is sent by all others at a time; 0 for one that is alone.
  std::uint64_t round_bytes = 0;
};
// `order`: of place_decoded(). `most`: what slabs are where memory is no matter.
MemoryShares share_memory(const Program& program, const std::vector<const Checkpoint*>& inputs,
                          std::uint64_t memory, std::size_t workers = 1,
                          std::span<const OutputId> order = {}, const Limits& most = {});

}  // namespace shw
