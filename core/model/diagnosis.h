// What a rule found out about one tensor, exactly enough to repair it: the hand-over from rules to
// repair. Each kind says in its own terms how the saved boxes relate to the true ones
// (spec/failures.md names the formulas).
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

// S1, report NeMo AutoModel #1691. Saved size[grown] = factor * true, size[shrunk] = true / factor;
// the shards that were recorded along `grown` belong along `shrunk`: chunk (.., o_grown, .., 0) ->
// (.., 0, .., (o_grown / n_grown) * n_shrunk).
struct AxisMoved {
  TensorId tensor{};
  std::size_t grown = 0;
  std::size_t shrunk = 0;
  std::int64_t factor = 1;
  Extents expected;  // the true shape
};

// The chunks hold the right bytes under wrong boxes: a new box for each chunk, in the order of the
// tensor's chunks (S5 E2, E3).
struct Relabelled {
  TensorId tensor{};
  Extents expected;
  std::vector<Box> boxes;
};

// What is on disk is a part of the truth, placed as `pieces` say; all else of `expected` is lost
// (S2, S3, S4, S5 E1).
struct Survivor {
  ChunkId chunk{};  // of any tensor: S2 takes rows of `_v` for `_w`
  Box source;       // inside the chunk, chunk-local offsets
  Extents at;       // where it belongs: offsets in the true tensor; the sizes are the source's
};
struct PartlyLost {
  TensorId tensor{};
  Extents expected;
  std::vector<Survivor> survivors;  // disjoint in the true tensor
  std::string
      refill_from;  // FQN of the model tensor whose cast may fill the rest (masters), or empty
};

// Rows are all there in another order: block `i` of the true tensor along `dim` is block `order[i]`
// on disk (S4 order, S5 E5, N1 to N3).
struct BlocksPermuted {
  TensorId tensor{};
  std::size_t dim = 0;
  std::int64_t block = 1;  // rows a block
  std::vector<std::int64_t> order;
};

// The chunk is whole in a side file (per-rank optimizer masters, S4) and is taken from there, cast
// to the tensor's dtype.
struct SidePiece {
  std::string file;                      // relative to the checkpoint
  std::uint64_t offset = 0, length = 0;  // of the raw little-endian payload in that file
  Dtype dtype = Dtype::kUnknown;
  Extents sizes;  // the payload's shape, row-major
  Extents at;     // offsets in the true tensor
};
struct RestoredFromSide {
  TensorId tensor{};
  Extents expected;
  std::vector<SidePiece> pieces;
};

// Records of two tiles name the same bytes, and the own ones of these chunks lie in items of data
// files that no record names (rule shared-storage). Boxes and bytes stay.
struct NewPlace {
  ChunkId chunk{};
  FileId file = FileId::kNone;
  std::uint64_t offset = 0, length = 0;  // of the whole item
};
struct Repointed {
  TensorId tensor{};
  std::vector<NewPlace> places;
};

// Rules tile-unlisted and storage-dangling: tiles that the tensor's list lacks, each with its
// record and its whole item. The tiles that are listed and have an item stay; with these they are
// all.
struct ListedAgain {
  Box box;
  ChunkId like{};  // any chunk whose items are written the same way, of the same dtype
  FileId file = FileId::kNone;
  std::uint64_t offset = 0, length = 0;  // of the whole item
};
struct Relisted {
  TensorId tensor{};
  std::vector<ListedAgain> tiles;
};

// N8: every matrix of the saved tensor is the transpose of the true one. `first` and `second` are
// the two dims that change places, with sizes, offsets and the elements themselves.
struct Transposed {
  TensorId tensor{};
  std::size_t first = 0;
  std::size_t second = 1;
  Extents expected;  // the saved shape with the two dims exchanged
};

// N10: the tensor is whole and right under the name of another layer.
struct Renamed {
  TensorId tensor{};
  std::string fqn;  // its true name, spelled as the checkpoint spells names
  // Entries that are no tensors and belong to the same layers (_extra_state, param_groups), by
  // index in objects(): held by the first of the tensors that are renamed together.
  std::vector<std::pair<std::size_t, std::string>> objects;
};

using Diagnosis = std::variant<AxisMoved, Relabelled, PartlyLost, BlocksPermuted, RestoredFromSide,
                               Repointed, Relisted, Transposed, Renamed>;

TensorId tensor_of(const Diagnosis& diagnosis);

}  // namespace shw
