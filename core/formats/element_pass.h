// Every element of a chunk once, in whatever order it lies: for sums that do not ask which is
// which. Nothing larger than a slab is held: what has to be decoded is decoded as it passes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/io/read_through.h"
#include "core/model/checkpoint.h"
#include "core/tensor/statistics.h"

namespace shw {

// Elements [first, last) of those of a chunk, as they are counted where they lie: passes over all
// such ranges give every element once, on any number of threads. Where elements cannot be counted
// there (a view with gaps, an item that has to be decoded) the range that begins at 0 gives all of
// them and the others none. Whole elements, little-endian; holes as `parts.hole`.
struct ElementRange {
  std::int64_t first = 0, last = 0;
};
// Elements that all have the same bytes, and are nowhere: one of them, and how many there are.
using AlikeElements = std::function<Status(BytesView element, std::uint64_t count)>;
// Adds elements that are all alike at once: what HDF5 reads where nothing was written may be
// gigabytes of a file of a few bytes. Null where they are wider than add_elements() takes.
AlikeElements counting_alike(StatisticsSums& sums);
// How many elements were given, or why they cannot be: kDamaged too where the item is of another
// dtype or size than its chunk is recorded.
Result<std::int64_t> pass_elements(const Checkpoint& checkpoint, ChunkId chunk, ElementRange range,
                                   const RangeParts& parts, Progress* progress);

class ItemFiles;

// The same for one thread that goes from chunk to chunk: files stay open, and small items are read
// together. Without `alike` such elements come as bytes.
class ElementPasses {
 public:
  explicit ElementPasses(const Checkpoint& checkpoint);
  ~ElementPasses();
  Result<std::int64_t> pass(ChunkId chunk, ElementRange range, const RangeParts& parts,
                            Progress* progress, const AlikeElements& alike = nullptr);

 private:
  const Checkpoint& checkpoint_;
  std::unique_ptr<ItemFiles> files_;
};

}  // namespace shw
