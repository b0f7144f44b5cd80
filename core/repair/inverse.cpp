#include "core/repair/inverse.h"

#include <algorithm>
#include <map>

#include "core/base/parallel.h"
#include "core/repair/lower.h"
#include "core/repair/moved_by.h"
#include "core/tiles/exact_tiling.h"

namespace shw {
namespace {

constexpr std::size_t kMostPieces = 100'000;
// Pieces times chunks that are looked through for them.
constexpr std::uint64_t kMostLooks = 10'000'000;

// Of the new tensor's dims that of the old chunk's: the inverse of `order`, empty like it.
Extents dims_back(const Extents& order) {
  Extents back(order.size());
  for (std::size_t d = 0; d < order.size(); ++d)
    back[static_cast<std::size_t>(order[d])] = static_cast<std::int64_t>(d);
  return back;
}

// Where the part lies in the new tensor.
Box box_in_new(const InverseChunk::Part& part) {
  Box box{part.from, part.sizes};
  for (std::size_t d = 0; d < part.order.size(); ++d)
    box.sizes[static_cast<std::size_t>(part.order[d])] = part.sizes[d];
  return box;
}

bool is_box_of(const InverseChunk::Part& part, ExtentsView old_sizes, ExtentsView shape) {
  if (!lies_inside(part.at, part.sizes, old_sizes)) return false;
  if (!is_order_of_dims(part.order, part.sizes.size())) return false;
  Box box = box_in_new(part);
  return lies_inside(box.offsets, box.sizes, shape);
}

bool covers(const InverseChunk& chunk) {
  std::vector<Box> boxes;
  for (const InverseChunk::Part& part : chunk.parts) boxes.push_back({part.at, part.sizes});
  return tiles_exactly(boxes, chunk.sizes);
}

// The old chunk, to be put together from the new tensor's chunks.
PlannedChunk old_chunk(const Checkpoint& result, TensorId tensor, const InverseChunk& inverse) {
  PlannedChunk made;
  made.box = whole(inverse.sizes);
  for (const InverseChunk::Part& part : inverse.parts) {
    Box wanted = box_in_new(part);
    for (ChunkId chunk : result.chunks(tensor)) {
      Box saved = box_of(result, chunk);
      auto common = wanted.sizes.empty() ? std::optional<Box>(wanted) : intersect(saved, wanted);
      if (!common) continue;
      Piece piece{chunk, *common, part.at, part.order};
      for (std::size_t d = 0; d < part.at.size(); ++d) {
        std::size_t now = part.order.empty() ? d : static_cast<std::size_t>(part.order[d]);
        piece.source.offsets[d] -= saved.offsets[d];
        piece.at[d] += common->offsets[now] - wanted.offsets[now];
      }
      made.pieces.push_back(std::move(piece));
    }
  }
  return made;
}

}  // namespace

Result<std::vector<InverseChunk>> inverse_of(const PlannedTensor& planned,
                                             const Checkpoint& checkpoint, Progress* progress) {
  if (planned.lost_elements != 0 || is_pure_relabel(planned)) return std::vector<InverseChunk>{};
  std::map<ChunkId, InverseChunk> by_chunk;
  std::size_t parts = 0;
  for (const PlannedChunk& chunk : planned.chunks) {
    if (!chunk.side.empty()) return std::vector<InverseChunk>{};
    if (chunk.item) {
      // An item under another size than its recorded one says more than its chunk (S5 E3).
      if (!same(checkpoint.sizes(*chunk.item), chunk.box.sizes)) return std::vector<InverseChunk>{};
      by_chunk[*chunk.item].parts.push_back(
          {Extents(chunk.box.sizes.size(), 0), chunk.box.offsets, chunk.box.sizes});
    }
    for (const Piece& piece : chunk.pieces) {
      by_chunk[piece.chunk].parts.push_back({piece.source.offsets,
                                             moved_by(chunk.box.offsets, piece.at),
                                             piece.source.sizes, dims_back(piece.permutation)});
    }
    parts += chunk.pieces.size() + 1;
  }
  if (parts > kMostPieces || parts * planned.chunks.size() > kMostLooks)
    return std::vector<InverseChunk>{};
  std::vector<InverseChunk> inverse;
  std::vector<ChunkId> chunks;
  for (auto& [chunk, one] : by_chunk) {
    one.sizes = copy_of(checkpoint.sizes(chunk));
    if (!covers(one)) return std::vector<InverseChunk>{};
    chunks.push_back(chunk);
    inverse.push_back(std::move(one));
  }
  SHW_CHECK(each_in_parallel(chunks.size(), [&](std::size_t i) -> Status {
    BoxReader source(checkpoint);
    SHW_TRY(inverse[i].hash, hash_elements(source, chunks[i], progress));
    return {};
  }));
  return inverse;
}

Result<std::string> contradiction_of_inverse(const std::vector<InverseChunk>& inverse,
                                             TensorId tensor, const Checkpoint& checkpoint,
                                             Progress* progress) {
  ExtentsView shape = checkpoint.shape(tensor);
  std::uint64_t parts = 0;
  for (const InverseChunk& chunk : inverse) {
    parts += chunk.parts.size();
    bool plain = chunk.sizes.size() == shape.size() && volume(chunk.sizes) &&
                 volume(chunk.sizes) <= volume(shape) &&
                 std::all_of(chunk.parts.begin(), chunk.parts.end(),
                             [&](const auto& part) { return is_box_of(part, chunk.sizes, shape); });
    if (!plain || parts > kMostPieces || !covers(chunk)) return "the way back is none";
  }
  if (parts * checkpoint.chunks(tensor).size() > 10 * kMostLooks) return "the way back is too long";
  PlannedTensor planned;
  planned.tensor = tensor;
  std::vector<std::string> hashes(inverse.size());
  SHW_CHECK(each_in_parallel(inverse.size(), [&](std::size_t i) -> Status {
    BoxReader result(checkpoint);
    PlannedChunk old = old_chunk(checkpoint, tensor, inverse[i]);
    SHW_TRY(hashes[i], hash_payload(planned, old, result, progress));
    return {};
  }));
  for (std::size_t i = 0; i < inverse.size(); ++i) {
    if (hashes[i] != inverse[i].hash)
      return "mapped back, a tile of size " + to_text(inverse[i].sizes) + " is not the source's";
  }
  return std::string();
}

}  // namespace shw
