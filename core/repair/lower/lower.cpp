#include "core/repair/lower/lower.h"

#include <algorithm>
#include <map>

#include "core/base/checked.h"
#include "core/formats/items/items.h"
#include "core/repair/lower/item_place.h"
#include "core/tiles/exact_tiling.h"

namespace shw {
namespace {

// Upper limit of offsets and sizes: their sum cannot overflow int64.
constexpr std::int64_t kMaxCoordinate = std::int64_t{1} << 62;

bool is_plain_box(ExtentsView offsets, ExtentsView sizes, std::size_t ndim) {
  if (offsets.size() != ndim || sizes.size() != ndim || !volume(sizes)) return false;
  for (std::size_t d = 0; d < ndim; ++d) {
    if (offsets[d] < 0 || offsets[d] >= kMaxCoordinate || sizes[d] < 0 ||
        sizes[d] >= kMaxCoordinate)
      return false;
  }
  return true;
}

Box translated_box(const Box& box, ExtentsView by) {
  Box out = box;
  for (std::size_t d = 0; d < by.size(); ++d) out.offsets[d] += by[d];
  return out;
}

// Metadata alone proves an item whose box has the recorded size. For a box of another size the
// item's own header must state that size.
Status check_item(const Checkpoint& checkpoint, const PlannedTensor& planned, const Box& box,
                  ChunkId chunk, const std::optional<ItemPlace>& place) {
  if (index_of(chunk) >= checkpoint.chunk_count() || !checkpoint.item(chunk))
    return cannot_lower(checkpoint, planned.tensor, "a chunk that it needs has no stored item");
  if (checkpoint.dtype(checkpoint.tensor_of(chunk)) != checkpoint.dtype(planned.tensor))
    return cannot_lower(checkpoint, planned.tensor, "an item has a different dtype");
  if (!place && same(box.sizes, checkpoint.sizes(chunk))) return {};
  SHW_TRY(ItemHeader header, place ? read_orphan_header(checkpoint, chunk, *place)
                                   : read_item_header(checkpoint, chunk));
  bool same_dtype = !place || header.dtype == checkpoint.dtype(planned.tensor);
  if (same(box.sizes, header.sizes) && same_dtype) return {};
  return cannot_lower(
      checkpoint, planned.tensor,
      "an item of size " + to_text(header.sizes) + " does not match the box " + to_text(box));
}

Status check_piece(const Checkpoint& checkpoint, const PlannedTensor& planned, const Piece& piece) {
  std::size_t ndim = planned.shape.size();
  if (index_of(piece.chunk) >= checkpoint.chunk_count() || !checkpoint.item(piece.chunk))
    return cannot_lower(checkpoint, planned.tensor, "a chunk that it needs has no stored item");
  if (!is_plain_box(piece.source.offsets, piece.source.sizes, ndim) || piece.at.size() != ndim ||
      !is_inside(piece.source.offsets, piece.source.sizes, checkpoint.sizes(piece.chunk))) {
    return cannot_lower(checkpoint, planned.tensor, "a part is outside its source chunk");
  }
  if (!is_order_of_dims(piece.permutation, ndim))
    return cannot_lower(checkpoint, planned.tensor, "a part has an invalid order of dimensions");
  if (checkpoint.dtype(checkpoint.tensor_of(piece.chunk)) != checkpoint.dtype(planned.tensor))
    return cannot_lower(checkpoint, planned.tensor, "a part has a different dtype");
  return {};
}

Status check_external_piece(const Checkpoint& checkpoint, const PlannedTensor& planned,
                            const ExternalPiece& side) {
  auto elements = volume(side.sizes);
  auto bytes = elements ? checked_mul(static_cast<std::uint64_t>(*elements),
                                      std::uint64_t{size_of(side.dtype)})
                        : std::nullopt;
  if (!bytes || *bytes != side.length || size_of(side.dtype) == 0 ||
      side.sizes.size() != planned.shape.size() || side.at.size() != planned.shape.size() ||
      !is_safe_relative_path(side.file)) {
    return cannot_lower(checkpoint, planned.tensor,
                        "the payload in " + side.file + " does not match its shape");
  }
  return {};
}

// Collects the boxes of the new tensor that the pieces of one new chunk fill.
Status collect_filled_boxes(const Checkpoint& checkpoint, const PlannedTensor& planned,
                            const PlannedChunk& chunk, std::vector<Box>& kept) {
  if (chunk.item) {
    auto place = external_item_place(checkpoint, chunk);
    if (!chunk.pieces.empty() || (!chunk.external.empty() && !place))
      return cannot_lower(checkpoint, planned.tensor,
                          "a chunk is both copied and assembled from parts");
    SHW_CHECK(check_item(checkpoint, planned, chunk.box, *chunk.item, place));
    kept.push_back(chunk.box);
    return {};
  }
  auto add = [&](const Extents& at, const Extents& sizes) -> Status {
    if (!is_inside(at, sizes, chunk.box.sizes))
      return cannot_lower(checkpoint, planned.tensor, "a part is outside its new chunk");
    kept.push_back(translated_box(Box{at, sizes}, chunk.box.offsets));
    return {};
  };
  for (const Piece& piece : chunk.pieces) {
    SHW_CHECK(check_piece(checkpoint, planned, piece));
    SHW_CHECK(add(piece.at, sizes_in_new(piece)));
  }
  for (const ExternalPiece& side : chunk.external) {
    SHW_CHECK(check_external_piece(checkpoint, planned, side));
    SHW_CHECK(add(side.at, side.sizes));
  }
  return {};
}

}  // namespace

tl::unexpected<Error> cannot_lower(const Checkpoint& checkpoint, TensorId tensor, std::string why) {
  std::string fqn = index_of(tensor) < checkpoint.tensor_count()
                        ? std::string(checkpoint.fqn(tensor))
                        : std::string();
  return fail(ErrorKind::kUnsupported, "no safe repair: " + std::move(why),
              Place{.file = {}, .tensor = std::move(fqn)});
}

bool is_order_of_dims(const Extents& permutation, std::size_t ndim) {
  if (permutation.empty()) return true;
  Extents sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t d = 0; d < sorted.size(); ++d) {
    if (sorted[d] != static_cast<std::int64_t>(d)) return false;
  }
  return sorted.size() == ndim;
}

Status check_chunks_are_boxes(const Checkpoint& checkpoint, TensorId tensor) {
  if (index_of(tensor) >= checkpoint.tensor_count())
    return cannot_lower(checkpoint, tensor, "there is no such tensor");
  std::size_t ndim = checkpoint.shape(tensor).size();
  if (ndim > kMaxDims) return cannot_lower(checkpoint, tensor, "it has more than 64 dimensions");
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    if (!is_plain_box(checkpoint.offsets(chunk), checkpoint.sizes(chunk), ndim))
      return cannot_lower(checkpoint, tensor, "a recorded chunk has an invalid box");
  }
  return {};
}

bool is_pure_relabel(const PlannedTensor& planned) {
  return planned.lost_elements == 0 &&
         std::all_of(planned.chunks.begin(), planned.chunks.end(),
                     [](const PlannedChunk& chunk) { return chunk.item.has_value(); });
}

Result<std::vector<Box>> unfilled_boxes(const Checkpoint& checkpoint, const PlannedTensor& tensor,
                                        const PlannedChunk& chunk) {
  std::vector<Box> covered;
  for (const Piece& piece : chunk.pieces) covered.push_back({piece.at, sizes_in_new(piece)});
  for (const ExternalPiece& side : chunk.external) covered.push_back({side.at, side.sizes});
  auto rest = complement(covered, chunk.box.sizes);
  if (!rest)
    return cannot_lower(checkpoint, tensor.tensor,
                        "the lost elements are in too many separate boxes");
  return std::move(*rest);
}

std::uint64_t bytes_moved(const Checkpoint& checkpoint, const PlannedTensor& planned) {
  std::uint64_t elements = 0;
  auto add = [&](ExtentsView sizes) {
    elements += static_cast<std::uint64_t>(volume(sizes).value_or(0));
  };
  for (const PlannedChunk& chunk : planned.chunks) {
    for (const Piece& piece : chunk.pieces) add(piece.source.sizes);
    if (chunk.item) continue;
    for (const ExternalPiece& side : chunk.external) add(side.sizes);
  }
  return elements * size_of(checkpoint.dtype(planned.tensor));
}

Status prove_planned(const Checkpoint& checkpoint, const PlannedTensor& planned) {
  SHW_CHECK(check_chunks_are_boxes(checkpoint, planned.tensor));
  if (planned.shape.size() > kMaxDims || !volume(planned.shape))
    return cannot_lower(checkpoint, planned.tensor, "the new shape is invalid");
  std::vector<Box> boxes, accounted;
  for (const PlannedChunk& chunk : planned.chunks) {
    if (!is_plain_box(chunk.box.offsets, chunk.box.sizes, planned.shape.size()))
      return cannot_lower(checkpoint, planned.tensor, "a new chunk has an invalid box");
    boxes.push_back(chunk.box);
    SHW_CHECK(collect_filled_boxes(checkpoint, planned, chunk, accounted));
  }
  if (!tiles_exactly(boxes, planned.shape)) {
    return cannot_lower(checkpoint, planned.tensor,
                        "its chunks would not cover " + to_text(planned.shape) + " exactly once");
  }
  for (const Box& box : planned.lost) {
    if (!is_plain_box(box.offsets, box.sizes, planned.shape.size()))
      return cannot_lower(checkpoint, planned.tensor, "a lost box is invalid");
  }
  if (total_volume(planned.lost) != planned.lost_elements)
    return cannot_lower(checkpoint, planned.tensor,
                        "the lost boxes do not match the number of lost elements");
  accounted.insert(accounted.end(), planned.lost.begin(), planned.lost.end());
  if (!tiles_exactly(accounted, planned.shape)) {
    return cannot_lower(checkpoint, planned.tensor,
                        "kept and lost elements do not add up to the whole tensor");
  }
  return {};
}

Result<PlannedTensor> lower(const Checkpoint& checkpoint, const Diagnosis& diagnosis) {
  SHW_CHECK(check_chunks_are_boxes(checkpoint, tensor_of(diagnosis)));
  struct Lower {
    const Checkpoint& checkpoint;
    Result<PlannedTensor> operator()(const AxisMoved& d) { return lower_axis_moved(checkpoint, d); }
    Result<PlannedTensor> operator()(const WrongBoxes& d) {
      return lower_relabelled(checkpoint, d);
    }
    Result<PlannedTensor> operator()(const PartlyLost& d) {
      return lower_partly_lost(checkpoint, d);
    }
    Result<PlannedTensor> operator()(const BlocksPermuted& d) {
      return lower_blocks_permuted(checkpoint, d);
    }
    Result<PlannedTensor> operator()(const RestoredFromRankFiles& d) {
      return lower_restored_from_side(checkpoint, d);
    }
    Result<PlannedTensor> operator()(const WrongItemRecords& d) {
      return lower_repointed(checkpoint, d);
    }
    Result<PlannedTensor> operator()(const UnlistedChunks& d) {
      return lower_relisted(checkpoint, d);
    }
    Result<PlannedTensor> operator()(const Transposed& d) {
      return lower_transposed(checkpoint, d);
    }
    Result<PlannedTensor> operator()(const Renamed& d) { return lower_renamed(checkpoint, d); }
  };
  SHW_TRY(PlannedTensor planned, std::visit(Lower{checkpoint}, diagnosis));
  planned.chunks.shrink_to_fit();
  SHW_CHECK(prove_planned(checkpoint, planned));
  bool only_moves = std::holds_alternative<AxisMoved>(diagnosis) ||
                    std::holds_alternative<WrongBoxes>(diagnosis) ||
                    std::holds_alternative<BlocksPermuted>(diagnosis) ||
                    std::holds_alternative<Transposed>(diagnosis) ||
                    std::holds_alternative<Renamed>(diagnosis);
  if (only_moves) SHW_CHECK(prove_bijection(checkpoint, planned));
  return planned;
}

}  // namespace shw
