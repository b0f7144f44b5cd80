// What is recorded and cannot be read: tiles whose file is not there or ends before them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/checkpoint.h"

namespace shw {

// Why the bytes of a chunk are not where its record says; empty where they can be.
std::string_view why_gone(const Checkpoint& checkpoint, ChunkId chunk);
std::uint64_t gone_tiles(const Checkpoint& checkpoint, TensorId tensor);
std::uint64_t gone_tiles(const Checkpoint& checkpoint);  // of all tensors

// It has a place in a file that is not there or ends before that.
bool is_gone_with_file(const Checkpoint& checkpoint, const std::optional<ItemPlace>& item);

// Elements of a tensor in such tiles.
std::int64_t gone_elements(const Checkpoint& checkpoint, TensorId tensor);
// Adds them up, and says them: "fc.weight: 8 of 32 elements", as many lines as evidence has.
void add_lost_elements(const Checkpoint& checkpoint, TensorId tensor, std::int64_t& elements,
                       std::vector<std::string>& lines);

}  // namespace shw
