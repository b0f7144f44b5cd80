// Delivers every element of a chunk once in any order, for order-independent sums. Memory is one
// slab; items are decoded as a stream.
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

// Element range [first, last) of a chunk in storage order: passes over disjoint ranges deliver
// every element once, on any number of threads. If elements are not countable in place (a view with
// gaps, a decoded item) the range that begins at 0 delivers all and the others none. Whole
// little-endian elements; holes go to `parts.hole`.
struct ElementRange {
  std::int64_t first = 0, last = 0;
};
// Receives a run of equal elements without storage: one element and their number.
using ConstantRunSink = std::function<Status(BytesView element, std::uint64_t count)>;
// Adds runs of equal elements to statistics: HDF5 datasets that were never written may have
// gigabytes of fill values. Null if elements are wider than add_elements() supports.
ConstantRunSink counting_alike(StatisticsSums& sums);
// Returns the number of elements delivered. kDamaged also if the item has another dtype or size
// than its chunk's record.
Result<std::int64_t> pass_elements(const Checkpoint& checkpoint, ChunkId chunk, ElementRange range,
                                   const ExtentVisitor& parts, Progress* progress);

class ItemFiles;

// pass_elements() for many chunks on one thread: files stay open, and small items are read
// together. If `alike` is null, constant runs are delivered as ordinary byte spans.
class ElementPasses {
 public:
  explicit ElementPasses(const Checkpoint& checkpoint);
  ~ElementPasses();
  Result<std::int64_t> pass(ChunkId chunk, ElementRange range, const ExtentVisitor& parts,
                            Progress* progress, const ConstantRunSink& alike = nullptr);

 private:
  const Checkpoint& checkpoint_;
  std::unique_ptr<ItemFiles> files_;
};

}  // namespace shw
