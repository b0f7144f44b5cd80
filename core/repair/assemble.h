// The payload of a new chunk, put together from pieces of old ones, side files and fill; and the
// comparison that proves it afterwards, written without the code that made it.
#pragma once

#include <map>
#include <memory>

#include "core/formats/dcp/dcp_write.h"
#include "core/formats/items.h"
#include "core/repair/plan.h"

namespace shw {

// A row-major array that holds a box of a chunk, which begins at `at` in it.
struct HeldBox {
  std::shared_ptr<const Bytes> bytes;
  Extents sizes;
  Extents at;
};

// Whole chunks as they were read last, up to a budget: neighbours share their sources. Raw items
// that are large are read box by box instead and not kept.
class ChunkCache {
 public:
  explicit ChunkCache(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}
  Result<std::shared_ptr<const Bytes>> read(ChunkId chunk);
  Result<HeldBox> read_box(ChunkId chunk, const Box& box);
  const Checkpoint& checkpoint() const { return checkpoint_; }

 private:
  const Checkpoint& checkpoint_;
  std::map<ChunkId, std::shared_ptr<const Bytes>> kept_;
  std::uint64_t bytes_ = 0;
};

// Writes the payload in slabs of at most 64 MiB along the first dimension; a slab of zeros alone
// becomes a hole. Refers to its arguments: they must outlive it.
PayloadWriter payload_of(const Checkpoint& checkpoint, const PlannedTensor& tensor,
                         const PlannedChunk& chunk, ChunkCache& cache, Progress* progress);

// Every piece, side piece and fill of `chunk` is in the chunk `at` that was written.
Status compare_payload(const Checkpoint& checkpoint, const PlannedTensor& tensor,
                       const PlannedChunk& chunk, ChunkCache& cache, ChunkCache& written,
                       ChunkId at);

// XXH3-128 of the row-major elements of `chunk`, put together from `cache`'s checkpoint.
Result<std::string> hash_payload(const PlannedTensor& tensor, const PlannedChunk& chunk,
                                 ChunkCache& cache, Progress* progress);
// And of a chunk as it lies there.
Result<std::string> hash_elements(ChunkCache& cache, ChunkId chunk, Progress* progress);

}  // namespace shw
