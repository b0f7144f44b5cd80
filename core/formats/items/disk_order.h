// Sorts chunks by the place of their items on disk.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/model/checkpoint.h"

namespace shw {

// Indices into `chunks` in the order of their items on disk.
std::vector<std::uint32_t> order_on_disk(const Checkpoint& checkpoint,
                                         std::span<const ChunkId> chunks);

// All chunks in the order of their items on disk.
std::vector<ChunkId> chunks_on_disk(const Checkpoint& checkpoint);

}  // namespace shw
