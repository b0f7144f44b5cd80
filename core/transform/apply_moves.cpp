// Steps that change where elements are: lists of boxes that move.
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <set>

#include "core/base/checked.h"
#include "core/tensor/block_orders.h"
#include "core/tiles/exact_tiling.h"
#include "core/transform/named_entries.h"
#include "core/transform/packed_tensor.h"
#include "core/transform/tilings.h"

namespace shw {
namespace {

// Limit on the blocks of a dim: later passes visit each of them.
constexpr std::size_t kMostBlocks = 1 << 20;

// Copies everything of a tensor except its boxes.
TargetTensor metadata_copy_of(const TargetTensor& tensor) {
  TargetTensor out;
  out.fqn = tensor.fqn;
  out.dtype = tensor.dtype;
  out.requires_grad = tensor.requires_grad;
  out.shape = tensor.shape;
  out.path = tensor.path;
  out.before = tensor.before;
  out.padding = tensor.padding;
  out.is_moved = true;
  return out;
}

Result<Extents> block_sizes_of(const TargetTensor& tensor, const PermuteBlocksStep& step,
                               std::size_t dim) {
  std::int64_t extent = tensor.shape[dim];
  auto count = static_cast<std::int64_t>(step.order.size());
  if (count == 0 || step.order.size() > kMostBlocks)
    return step_error(tensor.fqn, fmt::format("\"order\" names {} blocks", count));
  Extents sizes = step.sizes;
  if (sizes.empty()) {
    if (extent % count != 0) {
      return step_error(tensor.fqn,
                        fmt::format("dim {} has {} rows, which are not {} blocks of one "
                                    "size",
                                    dim, extent, count));
    }
    sizes.assign(step.order.size(), extent / count);
  }
  std::int64_t sum = 0;
  for (std::int64_t size : sizes) {
    auto next = size < 0 ? std::nullopt : checked_add(sum, size);
    if (!next) return step_error(tensor.fqn, "\"sizes\" are not sizes of blocks");
    sum = *next;
  }
  if (sum != extent) {
    return step_error(tensor.fqn, fmt::format("its blocks are {} rows together, and dim {} has {}",
                                              sum, dim, extent));
  }
  if (step.order.size() != sizes.size() || !is_permutation_of_indices(step.order))
    return step_error(tensor.fqn, "\"order\" does not name every block once");
  return sizes;
}

// The rows of one dim of a tensor.
Box rows_of(ExtentsView shape, std::size_t dim, std::int64_t begin, std::int64_t rows) {
  Box box = whole(shape);
  box.offsets[dim] = begin;
  box.sizes[dim] = rows;
  return box;
}

// Number of elements, without the padding that a step of this plan added.
std::int64_t unpadded_elements(const TargetTensor& tensor) {
  std::int64_t elements = volume(tensor.shape).value_or(0);
  for (const Part& part : tensor.parts) {
    if (part.is_padding()) elements -= volume(part.box.sizes).value_or(0);
  }
  return elements;
}

// Turns boxes that no tile covers into new tiles. Otherwise old boxes would describe items that are
// kept for a tensor whose tiles moved. If the tiles cover the unpadded tensor, `frame` is all that
// is left.
void add_uncovered_boxes_as_tiles(TargetTensor& tensor, bool is_covered,
                                  const std::vector<Box>& frame) {
  std::vector<Box> boxes;
  if (!is_covered) {
    for (const TargetChunk& tile : tensor.tiles) boxes.push_back(tile.box);
    boxes = complement(boxes, tensor.shape).value_or(std::vector<Box>{});
  }
  for (const Box& box : is_covered ? frame : boxes) tensor.tiles.push_back({box, 0});
}

bool is_covered_by_tiles(const TargetTensor& tensor) {
  std::vector<Box> boxes;
  for (const TargetChunk& tile : tensor.tiles) boxes.push_back(tile.box);
  return tiles_exactly(boxes, tensor.shape);
}

}  // namespace

Status apply(TargetState& all, const PermuteDimsStep& step) {
  return change_matching_tensors(all, step.tensors, [&](TargetTensor& tensor) -> Status {
    std::size_t ndim = tensor.shape.size();
    if (step.order.size() != ndim || !is_permutation_of_indices(step.order))
      return step_error(tensor.fqn,
                        "\"order\" does not name every dim of " + to_text(tensor.shape) + " once");
    TargetTensor turned = metadata_copy_of(tensor);
    for (std::size_t d = 0; d < ndim; ++d)
      turned.shape[d] = tensor.shape[static_cast<std::size_t>(step.order[d])];
    BoxMapping move{whole(tensor.shape), Extents(ndim, 0), step.order};
    append_mapped(tensor, {&move, 1}, TileMovement::kMoveWithElements, turned);
    tensor = std::move(turned);
    return {};
  });
}

Status apply(TargetState& all, const PermuteBlocksStep& step) {
  return change_matching_tensors(all, step.tensors, [&](TargetTensor& tensor) -> Status {
    SHW_TRY(std::size_t dim, dim_of(tensor, step.dim));
    SHW_TRY(Extents sizes, block_sizes_of(tensor, step, dim));
    Extents begins(sizes.size(), 0);
    for (std::size_t i = 1; i < sizes.size(); ++i) begins[i] = begins[i - 1] + sizes[i - 1];
    std::vector<BoxMapping> moves;
    std::int64_t at = 0;
    for (std::int64_t block : step.order) {
      auto old = static_cast<std::size_t>(block);
      BoxMapping move{rows_of(tensor.shape, dim, begins[old], sizes[old]),
                      Extents(tensor.shape.size(), 0), identity_order(tensor.shape.size())};
      move.to[dim] = at;
      at += sizes[old];
      if (sizes[old] != 0) moves.push_back(std::move(move));
    }
    TargetTensor moved = metadata_copy_of(tensor);
    append_mapped(tensor, moves, TileMovement::kKeepPlace, moved);
    tensor = std::move(moved);
    return {};
  });
}

Status apply(TargetState& all, const SplitStep& step) {
  SHW_TRY(std::size_t entry, entry_named(all, step.tensor));
  SHW_TRY(TargetTensor tensor, copy_of_entry(all, entry));
  SHW_TRY(std::size_t dim, dim_of(tensor, step.dim));
  if (step.into.size() != step.sizes.size() || step.into.empty())
    return step_error(step.tensor, "\"into\" needs a name for every one of \"sizes\"");
  std::vector<TargetEntry> made;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < step.into.size(); ++i) {
    std::int64_t size = step.sizes[i];
    auto end = size < 0 ? std::nullopt : checked_add(begin, size);
    if (!end || *end > tensor.shape[dim] || (step.drop_dim && size != 1))
      return step_error(step.tensor, fmt::format("\"sizes\" do not cut its {} rows of dim {}{}",
                                                 tensor.shape[dim], dim,
                                                 step.drop_dim ? " into single ones" : ""));
    TargetTensor part = metadata_copy_of(tensor);
    part.fqn = step.into[i];
    part.path.clear();
    part.before = {};
    part.shape[dim] = size;
    if (i != 0) part.padding = 0;
    BoxMapping move{rows_of(tensor.shape, dim, begin, size), Extents(tensor.shape.size(), 0),
                    identity_order(tensor.shape.size())};
    if (step.drop_dim) {
      auto at = static_cast<std::ptrdiff_t>(dim);
      part.shape.erase(part.shape.begin() + at);
      move.to.erase(move.to.begin() + at);
      move.order.erase(move.order.begin() + at);
    }
    append_mapped(tensor, {&move, 1}, TileMovement::kMoveWithElements, part);
    if (part.tiles.empty()) part.tiles.push_back({whole(part.shape), 0});
    TargetEntry one{part.fqn};
    one.made = std::make_shared<const PackedTensor>(std::move(part));
    made.push_back(std::move(one));
    begin = *end;
  }
  if (begin != tensor.shape[dim])
    return step_error(step.tensor, fmt::format("\"sizes\" are {} rows together, and dim {} has {}",
                                               begin, dim, tensor.shape[dim]));
  remove_entry(all, entry, std::move(made));
  return {};
}

namespace {

// Shape and dtype of the concatenated tensor; fails if the inputs do not fit along `dim`.
Status make_concat_metadata(const ConcatStep& step, const TargetTensor& first, std::size_t& dim,
                            TargetTensor& into) {
  into = metadata_copy_of(first);
  into.fqn = step.into;
  into.path.clear();
  into.before = {};
  into.padding = 0;
  if (!step.new_dim) {
    SHW_TRY(dim, dim_of(first, step.dim));
    into.shape[dim] = 0;
    return {};
  }
  auto ndim = static_cast<std::int64_t>(first.shape.size());
  if (step.dim < 0 || step.dim > ndim || ndim + 1 > static_cast<std::int64_t>(kMaxDims))
    return step_error(first.fqn, fmt::format("cannot be stacked along dim {}", step.dim));
  dim = static_cast<std::size_t>(step.dim);
  into.shape.insert(into.shape.begin() + step.dim, 0);
  return {};
}

Status add_to_concat(const ConcatStep& step, const TargetTensor& tensor, std::size_t dim,
                     TargetTensor& into) {
  BoxMapping move = shift_of(tensor.shape, Extents(tensor.shape.size(), 0));
  Extents shape = tensor.shape;
  if (step.new_dim) {
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(dim), 1);
    move.to.insert(move.to.begin() + static_cast<std::ptrdiff_t>(dim), 0);
    move.order.insert(move.order.begin() + static_cast<std::ptrdiff_t>(dim), -1);
  }
  Extents wanted = into.shape;
  wanted[std::min(dim, wanted.size() - 1)] = dim < shape.size() ? shape[dim] : 0;
  if (tensor.dtype != into.dtype || shape != wanted) {
    return step_error(tensor.fqn,
                      fmt::format("is {} of {}, which does not go with the others: {} of "
                                  "{} but for dim {}",
                                  to_text(tensor.shape), name(tensor.dtype), to_text(into.shape),
                                  name(into.dtype), dim));
  }
  auto end = checked_add(into.shape[dim], shape[dim]);
  if (!end) return step_error(tensor.fqn, "they are too many rows together");
  move.to[dim] = into.shape[dim];
  into.shape[dim] = *end;
  into.padding += tensor.padding;
  append_mapped(tensor, {&move, 1}, TileMovement::kMoveWithElements, into);
  return {};
}

}  // namespace

Status apply(TargetState& all, const ConcatStep& step) {
  if (step.tensors.empty()) return fail(ErrorKind::kUsage, "no tensor is named");
  std::vector<std::size_t> entries;
  std::set<std::size_t> taken;
  TargetTensor into;
  std::size_t dim = 0;
  for (const std::string& fqn : step.tensors) {
    SHW_TRY(std::size_t entry, entry_named(all, fqn));
    if (!taken.insert(entry).second) return step_error(fqn, "is named twice");
    SHW_TRY(TargetTensor tensor, copy_of_entry(all, entry));
    if (entries.empty()) SHW_CHECK(make_concat_metadata(step, tensor, dim, into));
    SHW_CHECK(add_to_concat(step, tensor, dim, into));
    entries.push_back(entry);
  }
  if (!volume(into.shape)) return step_error(step.into, "would be too large");
  replace_entry_tensor(all, entries.front(), std::move(into));
  for (std::size_t i = 1; i < entries.size(); ++i) remove_entry(all, entries[i]);
  return {};
}

Status apply(TargetState& all, const PadStep& step) {
  return change_matching_tensors(all, step.tensors, [&](TargetTensor& tensor) -> Status {
    std::size_t ndim = tensor.shape.size();
    if (step.before.size() != ndim || step.after.size() != ndim)
      return step_error(tensor.fqn, "\"before\" and \"after\" need a number for every dim of " +
                                        to_text(tensor.shape));
    TargetTensor padded = metadata_copy_of(tensor);
    for (std::size_t d = 0; d < ndim; ++d) {
      auto wider = checked_add(tensor.shape[d], step.before[d]);
      wider = wider ? checked_add(*wider, step.after[d]) : wider;
      if (step.before[d] < 0 || step.after[d] < 0 || !wider)
        return step_error(tensor.fqn, fmt::format("cannot be padded along dim {}", d));
      padded.shape[d] = *wider;
    }
    if (!volume(padded.shape)) return step_error(tensor.fqn, "would be too large");
    SHW_TRY(FromConstant value, constant_of(tensor.dtype, step.value));
    value.is_padding = true;
    BoxMapping move = shift_of(tensor.shape, step.before);
    append_mapped(tensor, {&move, 1}, TileMovement::kMoveWithElements, padded);
    Box inner{step.before, tensor.shape};
    std::vector<Box> frame;
    if (ndim != 0) frame = subtract(whole(padded.shape), inner);
    for (const Box& box : frame) padded.parts.push_back({box, value, {}, {}, tensor.dtype});
    add_uncovered_boxes_as_tiles(padded, ndim != 0 && is_covered_by_tiles(tensor), frame);
    tensor = std::move(padded);
    return {};
  });
}

Status apply(TargetState& all, const TrimStep& step) {
  return change_matching_tensors(all, step.tensors, [&](TargetTensor& tensor) -> Status {
    SHW_CHECK(check_boxes(tensor, {step.keep}));
    TargetTensor kept = metadata_copy_of(tensor);
    kept.shape = step.keep.sizes;
    BoxMapping move{step.keep, Extents(tensor.shape.size(), 0),
                    identity_order(tensor.shape.size())};
    append_mapped(tensor, {&move, 1}, TileMovement::kMoveWithElements, kept);
    if (kept.tiles.empty()) kept.tiles.push_back({whole(kept.shape), 0});
    std::atomic_ref<std::int64_t>(all.trimmed)
        .fetch_add(unpadded_elements(tensor) - unpadded_elements(kept));
    tensor = std::move(kept);
    return {};
  });
}

Status apply(TargetState& all, const RetileStep& step) {
  return change_matching_tensors(all, step.tensors, [&](TargetTensor& tensor) -> Status {
    std::vector<Box> boxes;
    for (const TargetChunk& tile : step.tiles) boxes.push_back(tile.box);
    SHW_CHECK(check_boxes(tensor, boxes));
    tensor.tiles = step.tiles;
    if (step.tiles.empty()) {
      tensor.tiles.push_back({whole(tensor.shape), 0});
    } else if (!tiles_exactly(boxes, tensor.shape)) {
      return step_error(tensor.fqn,
                        "\"tiles\" do not cover " + to_text(tensor.shape) + " exactly once");
    }
    return {};
  });
}

Status apply(TargetState& all, const ReshardStep& step) {
  SHW_TRY(auto entries, entries_named(all, step.tensors));
  if (step.placements.size() != step.mesh.axes.size()) {
    return fail(ErrorKind::kUsage, fmt::format("{} placements are named, and the mesh has {} axes",
                                               step.placements.size(), step.mesh.axes.size()));
  }
  // Partial cannot be saved in any format.
  for (std::size_t entry : entries)
    SHW_CHECK(check_no_partial(step.placements, all.tensors[entry].fqn));
  auto mesh = static_cast<std::uint32_t>(all.meshes.size());
  all.meshes.push_back(step.mesh);
  for (std::size_t entry : entries)
    all.tensors[entry].tiling = MeshTiling{mesh, step.placements, all.step};
  return {};
}

namespace {

// Carries over what earlier repairs filled in a saved tile: it is still not the saved value at its
// new place, whichever tensor the tile came from.
void add_earlier_loss(const TargetState& all, ChunkId chunk, const Box& to, TargetTensor& into) {
  const Checkpoint& source = all.source();
  auto found = all.losses.find(std::string(source.fqn(source.tensor_of(chunk))));
  if (found == all.losses.end()) return;
  TargetTensor filled;
  filled.loss = found->second;
  const Box saved = box_of(source, chunk);
  const BoxMapping move{saved, to.offsets, identity_order(to.offsets.size())};
  append_mapped(filled, {&move, 1}, TileMovement::kMoveWithElements, into);
}

}  // namespace

Status apply(TargetState& all, const RelabelStep& step) {
  SHW_TRY(std::size_t entry, entry_named(all, step.tensor));
  const Checkpoint& source = all.source();
  SHW_TRY(TargetTensor old, copy_of_entry(all, entry));
  TargetTensor tensor = metadata_copy_of(old);
  tensor.shape = step.shape;
  tensor.before = {};
  if (!volume(tensor.shape)) return step_error(step.tensor, "\"shape\" is none");
  std::set<std::uint32_t> used;
  std::vector<Box> boxes;
  for (const RelabelStep::Tile& tile : step.tiles) {
    if (!used.insert(tile.chunk).second)
      return step_error(step.tensor, fmt::format("tile {} is taken twice", tile.chunk));
    if (tile.chunk >= source.chunk_count())
      return step_error(step.tensor, fmt::format("there is no tile {}", tile.chunk));
    ChunkId chunk{tile.chunk};
    Box box{tile.offsets, copy_of(source.sizes(chunk))};
    if (!is_inside(box.offsets, box.sizes, tensor.shape)) {
      return step_error(step.tensor, "offsets " + to_text(box.offsets) + " and sizes " +
                                         to_text(box.sizes) + " are not a box of " +
                                         to_text(tensor.shape));
    }
    Dtype saved = source.dtype(source.tensor_of(chunk));
    if (saved != tensor.dtype) return step_error(step.tensor, "a tile of it is of another dtype");
    tensor.tiles.push_back({box, source.writer(chunk).value_or(0)});
    if (is_empty(box)) continue;
    boxes.push_back(box);
    add_earlier_loss(all, chunk, box, tensor);
    std::size_t ndim = box.sizes.size();
    tensor.parts.push_back({std::move(box), FromChunk{0, chunk}, Extents(ndim, 0),
                            identity_order(ndim), tensor.dtype});
  }
  if (!are_disjoint(boxes))
    return step_error(step.tensor, "two of its \"tiles\" would hold the same elements of " +
                                       to_text(tensor.shape));
  // Counts old elements that none of the new tiles uses.
  for (const Part& part : old.parts) {
    const auto* from = std::get_if<FromChunk>(&part.from);
    bool stays = from != nullptr && from->input == 0 &&
                 used.contains(static_cast<std::uint32_t>(index_of(from->chunk)));
    if (!stays && !part.is_padding()) all.trimmed += volume(part.box.sizes).value_or(0);
  }
  replace_entry_tensor(all, entry, std::move(tensor));
  return {};
}

}  // namespace shw
