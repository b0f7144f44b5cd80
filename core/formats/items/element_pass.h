// Delivers every element of a chunk or a box of it once, for computations that do not depend on the
// order of elements. Memory is one slab; items are decoded as a stream.
#pragma once

#include <cstdint>
#include <functional>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/formats/items/item_cursor.h"
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
ConstantRunSink constant_run_counter(StatisticsSums& sums);
// Adds all elements, holes included, to a counter of statistics.
template <class Counter>
ExtentVisitor counting(Counter& counter) {
  ExtentVisitor parts;
  parts.bytes = [&counter](BytesView bytes) -> Status {
    counter.add(bytes);
    return {};
  };
  parts.hole = [&counter](std::uint64_t length) -> Status {
    counter.add_zeros(length);
    return {};
  };
  return parts;
}

// Returns the number of elements delivered. Small items are read together. If `alike` is null,
// constant runs are delivered as ordinary byte spans. kDamaged also if the item has another dtype
// or size than its chunk's record.
Result<std::int64_t> stream_elements(ItemCursor& items, ChunkId chunk, ElementRange range,
                                     const ExtentVisitor& parts, Progress* progress,
                                     const ConstantRunSink& alike = nullptr);

// Receives a box relative to the chunk and its elements, row-major and little-endian.
using BoxSink = std::function<Status(const Box& box, BytesView elements)>;
// Delivers all elements of a box of a chunk in storage order. Each byte is read once and an item is
// decoded once, whatever the strides; memory is one piece of 4 MiB. kDamaged if the item has
// another dtype or shape than its chunk's record. Stops at the first error of `take`.
Status stream_boxes(ItemCursor& items, ChunkId chunk, const Box& all, const BoxSink& take,
                    const Progress* progress);

}  // namespace shw
