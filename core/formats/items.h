// The items that chunks point to: what their headers say, what their bytes hold, and whole tensors
// put together from them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/formats/common/item_header.h"
#include "core/formats/item_headers.h"
#include "core/model/checkpoint.h"
#include "core/tensor/statistics_counter.h"

namespace shw {

// Reads the header of one chunk's item. Errors carry file and absolute offset: kDamaged for bytes
// that are no such item (rule bad-record), kUnsupported for tensor subclasses and unknown
// transforms.
Result<ItemHeader> read_item_header(const Checkpoint& checkpoint, ChunkId chunk);

// Headers of all chunks, read in parallel, in chunk order. A chunk that has no readable item holds
// the Error.
Result<ItemHeaders> read_item_headers(const Checkpoint& checkpoint, Progress* progress);

// The header of an item that no record points to, as if it were the one of `chunk` (with its
// transforms).
Result<ItemHeader> read_orphan_header(const Checkpoint& checkpoint, ChunkId chunk, ItemPlace place);

// The elements of one chunk, row-major and little-endian, strides, byte order, conj and neg
// applied: size = elements * size_of(header.dtype).
Result<Bytes> read_chunk(const Checkpoint& checkpoint, ChunkId chunk);

// A run of bytes of a file of the checkpoint.
struct ByteRun {
  FileId file = FileId::kNone;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  friend bool operator==(const ByteRun&, const ByteRun&) = default;
};
// Where the elements of a box of a chunk lie (chunk-local), in row-major order: read one after the
// other, the runs are what read_chunk() would give of it. Nothing where bytes have to be decoded
// first: compressed, in another byte order, conjugated, or with the innermost dimension's elements
// apart.
Result<std::optional<std::vector<ByteRun>>> ranges(const Checkpoint& checkpoint, ChunkId chunk,
                                                   const Box& box);

// A whole tensor put together from its chunks, row-major. Elements that no chunk covers are zero
// and counted.
struct TensorValues {
  Dtype dtype = Dtype::kUnknown;
  Extents shape;
  Bytes bytes;
  std::int64_t uncovered = 0;
};
// `limit_bytes` guards against shapes that were made up: more than that is kUnsupported.
Result<TensorValues> read_tensor(const Checkpoint& checkpoint, TensorId tensor,
                                 std::uint64_t limit_bytes = std::uint64_t{64} << 30,
                                 Progress* progress = nullptr);

// The same of its first `count` elements alone, 0 for all: nothing else is read. `uncovered` counts
// in the whole tensor.
Result<TensorValues> read_first_elements(const Checkpoint& checkpoint, TensorId tensor,
                                         std::uint64_t count);

// All that statistics are made of, counted on the way.
struct ItemNumbers {
  StatisticsCounter& counter;               // for one thread
  std::optional<StatisticsSums> sums = {};  // where all elements lie in the file as they are
};
// Checksums of an item; with its header also what its elements are, in the same pass where they lie
// in the file as they are.
Result<DataCheck> check_item_data(const Checkpoint& checkpoint, ChunkId chunk, Progress* progress,
                                  const ItemHeader* header = nullptr,
                                  ItemNumbers* numbers = nullptr);
// The same for a BYTES entry's archive.
Result<DataCheck> check_object_data(const Checkpoint& checkpoint, std::size_t object,
                                    Progress* progress);

// XXH3-128 of the item's bytes as they lie in the file (holes included), as 32 hex digits: equal
// before and after a relabel.
Result<std::string> hash_item(const Checkpoint& checkpoint, ItemPlace place, Progress* progress);

}  // namespace shw
