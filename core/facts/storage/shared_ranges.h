// Finds items that claim the same bytes of a file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/model/checkpoint.h"

namespace shw {

// A claim on a range by a chunk or a non-tensor entry.
struct Claim {
  ChunkId chunk{};
  std::int64_t object = -1;  // index in objects(); negative: a chunk
  bool is_chunk() const { return object < 0; }
};

struct SharedRange {
  ItemPlace place;            // of the first claim
  std::vector<Claim> claims;  // at least two; for partial overlaps the two that overlap
  bool partial = false;       // the ranges overlap but are not equal
};

// Limits of reported ranges, and of claims per range: damaged metadata can make every pair
// overlap.
inline constexpr std::size_t kMaxShared = 4096;

// For torch checkpoints. Not reported: chunks that torch cannot distinguish (one tensor, equal
// offsets) and entries with identical records, which repairs create. `real`: for each file the file
// that its bytes are read from (linked_files.h); empty: itself.
std::vector<SharedRange> find_shared_ranges(const Checkpoint& checkpoint, const Progress* progress,
                                            const std::vector<FileId>& real = {});
// True for two tensors that share all chunks: tied weights, stored once.
bool is_tied(const Checkpoint& checkpoint, const SharedRange& range);

ItemPlace place_of(const Checkpoint& checkpoint, const Claim& claim);
std::string_view fqn_of(const Checkpoint& checkpoint, const Claim& claim);

}  // namespace shw
