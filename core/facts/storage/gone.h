// What is recorded and cannot be read: tiles whose file is not there or ends before them.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/model/checkpoint.h"

namespace shw {

// Why the bytes of a chunk are not where its record says; empty where they can be.
std::string_view why_gone(const Checkpoint& checkpoint, ChunkId chunk);
std::uint64_t gone_tiles(const Checkpoint& checkpoint, TensorId tensor);
std::uint64_t gone_tiles(const Checkpoint& checkpoint);  // of all tensors

}  // namespace shw
