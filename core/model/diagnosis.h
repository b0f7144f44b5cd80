// The diagnosis of a rule for one tensor, precise enough to repair it; the interface
// between rules and repair. Each kind states how the saved boxes relate to the correct
// ones.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/ids.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace shw {

// Placements recorded along the wrong axis (NeMo AutoModel #1691). Saved size[grown] = factor *
// true size, size[shrunk] = true size / factor; chunks recorded along `grown` belong along
// `shrunk`: (.., o_grown, .., 0) -> (.., 0, .., (o_grown / n_grown) * n_shrunk).
struct AxisMoved {
  TensorId tensor{};
  std::size_t grown = 0;
  std::size_t shrunk = 0;
  std::int64_t factor = 1;
  Extents expected;  // the correct shape
};

// The chunks hold correct bytes under wrong boxes: the correct box of each chunk, in the order of
// the tensor's chunks.
struct WrongBoxes {
  TensorId tensor{};
  Extents expected;
  std::vector<Box> boxes;
};

// Only a part of the data is on disk. `retained_chunks` says where it belongs; all other elements
// of `expected` are lost.
struct RetainedChunk {
  ChunkId chunk{};  // may belong to another tensor: rows of `_v` can be saved under `_w`
  Box source;       // relative to the chunk
  Extents at;       // offsets in the correct tensor; the sizes are those of `source`
};
struct PartlyLost {
  TensorId tensor{};
  Extents expected;
  std::vector<RetainedChunk> retained_chunks;  // disjoint in the correct tensor
  std::string refill_from;  // FQN of the model tensor that can fill the rest (masters), or empty
};

// All rows exist in the wrong order: block i of the correct tensor along `dim` is saved as block
// order[i].
struct BlocksPermuted {
  TensorId tensor{};
  std::size_t dim = 0;
  std::int64_t block = 1;  // rows per block
  std::vector<std::int64_t> order;
};

// The chunk is stored completely in another file (optimizer masters per rank); it is read from
// there and cast to the tensor's dtype.
struct ExternalPiece {
  std::string file;                      // relative to the checkpoint
  std::uint64_t offset = 0, length = 0;  // of the raw little-endian payload in that file
  Dtype dtype = Dtype::kUnknown;
  Extents sizes;  // shape of the payload, row-major
  Extents at;     // offsets in the correct tensor
};
struct RestoredFromRankFiles {
  TensorId tensor{};
  Extents expected;
  std::vector<ExternalPiece> pieces;
};

// Two chunks with records of the same bytes, whose correct bytes are in items without a record
// (rule shared-storage). Boxes and bytes do not change.
struct CorrectItemPlace {
  ChunkId chunk{};
  FileId file = FileId::kNone;
  std::uint64_t offset = 0, length = 0;  // of the whole item
};
struct WrongItemRecords {
  TensorId tensor{};
  std::vector<CorrectItemPlace> places;
};

// Chunks that are missing from the tensor's list, each with its record and whole item (rules
// tile-unlisted and storage-dangling). Together with the listed chunks they cover the
// tensor.
struct UnlistedChunk {
  Box box;
  ChunkId like{};  // any chunk whose items have the same form and dtype
  FileId file = FileId::kNone;
  std::uint64_t offset = 0, length = 0;  // of the whole item
};
struct UnlistedChunks {
  TensorId tensor{};
  std::vector<UnlistedChunk> tiles;
};

// Every matrix of the saved tensor is the transpose of the correct one. `first` and `second` are
// the dims to swap in sizes, offsets and elements.
struct Transposed {
  TensorId tensor{};
  std::size_t first = 0;
  std::size_t second = 1;
  Extents expected;  // the saved shape with the two dims swapped
};

// The tensor is complete and correct under the name of another layer.
struct Renamed {
  TensorId tensor{};
  std::string fqn;  // correct name in the checkpoint's spelling
  // Non-tensor entries of these layers (_extra_state, param_groups): index into objects() and new
  // name. Stored with the first of the tensors that are renamed together.
  std::vector<std::pair<std::size_t, std::string>> objects;
};

using Diagnosis =
    std::variant<AxisMoved, WrongBoxes, PartlyLost, BlocksPermuted, RestoredFromRankFiles,
                 WrongItemRecords, UnlistedChunks, Transposed, Renamed>;

TensorId tensor_of(const Diagnosis& diagnosis);

}  // namespace shw
