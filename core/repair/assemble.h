// The payload of a new chunk, put together from pieces of old ones, side files and fill; and the
// comparison that proves it afterwards, written without the code that made it.
#pragma once

#include <map>
#include <memory>

#include "core/formats/dcp_write.h"
#include "core/formats/items.h"
#include "core/repair/plan.h"

namespace shw {

// Whole chunks as they were read last, up to a budget: neighbours share their sources.
class ChunkCache {
 public:
  explicit ChunkCache(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}
  Result<std::shared_ptr<const Bytes>> read(ChunkId chunk);

 private:
  const Checkpoint& checkpoint_;
  std::map<ChunkId, std::shared_ptr<const Bytes>> kept_;
  std::uint64_t bytes_ = 0;
};

// Writes the payload in slabs of at most 64 MiB along the first dimension; a slab of zeros alone
// becomes a hole. Refers to its arguments: they must outlive it.
PayloadWriter payload_of(const Checkpoint& checkpoint, const PlannedTensor& tensor,
                         const PlannedChunk& chunk, ChunkCache& cache, Progress* progress);

// Every piece, side piece and fill of `chunk` is in `written`, the row-major elements that were
// read back.
Status compare_payload(const Checkpoint& checkpoint, const PlannedTensor& tensor,
                       const PlannedChunk& chunk, ChunkCache& cache, BytesView written);

}  // namespace shw
