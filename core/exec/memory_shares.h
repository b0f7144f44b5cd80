// Divides the memory limit of a run among its users.
#pragma once

#include <cstdint>
#include <vector>

#include "core/exec/spill_plan.h"
#include "core/exec/write_blocks.h"

namespace shw {

struct MemoryPlan {
  SlabLimits limits;                // slab sizes of each thread
  std::uint64_t decoded_bytes = 0;  // for DecodedItems
  SpillPlan decoded;                // items that are decoded to disk instead
  // Bytes that a rank receives from all others per round; 0 for a single process.
  std::uint64_t round_bytes = 0;
};
// `order`: see plan_spill(). `most`: slab sizes with unlimited memory.
MemoryPlan plan_memory(const Program& program, const std::vector<const Checkpoint*>& inputs,
                       std::uint64_t memory, std::size_t workers = 1,
                       std::span<const OutputId> order = {}, const SlabLimits& most = {});

}  // namespace shw
