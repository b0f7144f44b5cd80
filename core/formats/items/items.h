// Reads single items, and whole tensors assembled from chunks. To read many items or boxes, use an
// ItemCursor (item_cursor.h).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/formats/common/item_header.h"
#include "core/formats/items/item_headers.h"
#include "core/model/checkpoint.h"

namespace shw {

// Reads the header of a chunk's item. Errors carry file and absolute offset: kDamaged for bytes
// that are not a valid item (rule bad-record), kUnsupported for tensor subclasses and unknown
// transforms.
Result<ItemHeader> read_item_header(const Checkpoint& checkpoint, ChunkId chunk);

// Headers of all chunks in chunk order, read in parallel. A chunk without a readable item holds an
// Error.
Result<ItemHeaders> read_item_headers(const Checkpoint& checkpoint, Progress* progress);

// The header of an unreferenced item, read as if it belonged to `chunk` (with its
// transforms).
Result<ItemHeader> read_orphan_header(const Checkpoint& checkpoint, ChunkId chunk, ItemPlace place);

// The elements of a chunk, row-major and little-endian, with strides, byte order, conj and neg
// applied: elements * size_of(header.dtype) bytes.
Result<Bytes> read_chunk(const Checkpoint& checkpoint, ChunkId chunk);

// A byte range of a file of the checkpoint.
struct ByteRun {
  FileId file = FileId::kNone;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  friend bool operator==(const ByteRun&, const ByteRun&) = default;
};
// The byte runs of a box (relative to the chunk) in row-major order; concatenated
// they equal the part of read_chunk(). nullopt if bytes must be decoded:
// compressed, another byte order, conjugated, or strided in the innermost
// dimension.
Result<std::optional<std::vector<ByteRun>>> ranges(const Checkpoint& checkpoint, ChunkId chunk,
                                                   const Box& box);

// A whole tensor assembled from its chunks, row-major. Elements in no chunk are zero and
// counted.
struct TensorValues {
  Dtype dtype = Dtype::kUnknown;
  Extents shape;
  Bytes bytes;
  std::int64_t uncovered = 0;
};
// `limit_bytes` rejects invalid shapes: larger tensors are kUnsupported.
Result<TensorValues> read_tensor(const Checkpoint& checkpoint, TensorId tensor,
                                 std::uint64_t limit_bytes = std::uint64_t{64} << 30,
                                 Progress* progress = nullptr);

// The first `count` elements of a tensor, 0 for all; reads nothing else. `uncovered` refers to the
// whole tensor.
Result<TensorValues> read_first_elements(const Checkpoint& checkpoint, TensorId tensor,
                                         std::uint64_t count);

}  // namespace shw
