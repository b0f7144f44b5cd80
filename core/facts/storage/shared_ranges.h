// Items that claim the same bytes of a file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/model/checkpoint.h"

namespace shw {

// Who claims a range: a chunk, or an entry that is no tensor.
struct Claim {
  ChunkId chunk{};
  std::int64_t object = -1;  // index in objects(); negative: it is the chunk
  bool is_chunk() const { return object < 0; }
};

struct SharedRange {
  ItemPlace place;            // of the first claim
  std::vector<Claim> claims;  // two or more; of a partial overlap the two that overlap
  bool partial = false;       // their ranges are not the same, only not apart
};

// A damaged metadata can make every pair overlap: so many ranges are told, and so many claims of
// one.
inline constexpr std::size_t kMostShared = 4096;

// Of a torch checkpoint; chunks that torch itself cannot tell apart (one tensor, equal offsets) and
// entries that say the same word for word (a repair makes them) share by right.
// `real`: for each file the one that its bytes are read as (linked_files.h); its own where empty.
std::vector<SharedRange> find_shared(const Checkpoint& checkpoint, const Progress* progress,
                                     const std::vector<FileId>& real = {});
// Two tensors that are the same tile by tile: tied, and stored once.
bool is_tied(const Checkpoint& checkpoint, const SharedRange& range);

ItemPlace place_of(const Checkpoint& checkpoint, const Claim& claim);
std::string_view fqn_of(const Checkpoint& checkpoint, const Claim& claim);

}  // namespace shw
