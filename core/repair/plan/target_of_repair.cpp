// Target of a repair: items that stay, boxes of chunks, bytes of other files, and fill values for
// the rest.
#include <algorithm>
#include <map>

#include "core/base/checked.h"
#include "core/formats/items/items.h"
#include "core/model/state_path.h"
#include "core/repair/lower/item_place.h"
#include "core/repair/lower/lower.h"
#include "core/repair/lower/moved_by.h"
#include "core/repair/plan/entries.h"
#include "core/repair/plan/target_of_plan.h"
#include "core/repair/run/lost.h"
#include "core/rules/rules.h"
#include "core/tensor/cast.h"
#include "core/tensor/strided_copy.h"
#include "core/transform/packed_tensor.h"

namespace shw {
namespace {

class RepairedTensors {
 public:
  RepairedTensors(TargetState& all, bool keeps_files)
      : all_(all),
        keeps_files_(keeps_files),
        rewrites_files_(keeps_files && source_.format().rewrite == Rewrite::kFiles) {}

  Result<TargetTensor> target_of_tensor(const PlannedTensor& planned) {
    TargetTensor tensor;
    tensor.fqn = fqn_after(source_, planned);
    tensor.dtype = source_.dtype(planned.tensor);
    tensor.requires_grad = source_.requires_grad(planned.tensor);
    tensor.shape = planned.shape;
    SHW_TRY(tensor.path, path_of_planned(planned, tensor.fqn));
    tensor.before = planned.tensor;
    tensor.padding = count_dropped_padding(source_, planned);
    const bool is_joined = has_to_be_joined(planned);
    std::vector<FileId> made_of;
    for (const PlannedChunk& chunk : planned.chunks) {
      if (!is_joined) made_of.clear();
      const bool stays = chunk.item && !is_joined && keeps_item(planned, chunk);
      if (!stays && !is_empty(chunk.box)) SHW_CHECK(add_chunk(planned, chunk, tensor));
      if (!stays && rewrites_files_) add_source_files_of_chunk(chunk, made_of);
      if (!is_joined) tensor.tiles.push_back(tile_of(chunk, stays, made_of));
    }
    if (!is_joined) return tensor;
    PlannedChunk one;
    one.box = whole(planned.shape);
    one.writer = planned.chunks.empty() ? 0 : planned.chunks.front().writer;
    tensor.tiles.push_back(tile_of(one, false, made_of));
    return tensor;
  }

 private:
  // True if the chunks must be joined because the format stores a tensor in one piece.
  bool has_to_be_joined(const PlannedTensor& planned) const {
    if (!rewrites_files_ || !source_.format().traits.has_one_piece_per_tensor) return false;
    return planned.chunks.size() != 1 || planned.chunks.front().box != whole(planned.shape);
  }

  // Files that store names find bytes by the tensor's name, so items of another tensor or of a
  // renamed tensor must be copied.
  bool keeps_item(const PlannedTensor& planned, const PlannedChunk& chunk) const {
    if (!keeps_files_) return false;
    const bool keeps_name = planned.fqn.empty() || planned.fqn == source_.fqn(planned.tensor);
    return !rewrites_files_ || (keeps_name && source_.tensor_of(*chunk.item) == planned.tensor);
  }

  // Adds the source files that contain the chunk's elements; fill values need none.
  void add_source_files_of_chunk(const PlannedChunk& chunk, std::vector<FileId>& files) const {
    auto add = [&](ChunkId from) {
      const auto item = source_.item(from);
      const bool is_new = item && std::find(files.begin(), files.end(), item->file) == files.end();
      if (is_new) files.push_back(item->file);
    };
    if (chunk.item) add(*chunk.item);
    for (const Piece& piece : chunk.pieces) add(piece.chunk);
  }

  TargetChunk tile_of(const PlannedChunk& chunk, bool stays,
                      const std::vector<FileId>& made_of) const {
    TargetChunk tile{chunk.box, chunk.writer};
    RareOutputTileFields more{{}, made_of};
    if (stays) {
      tile.kept = chunk.item;
      more = {external_item_place(source_, chunk)};
    }
    if (more.place || !more.made_of.empty())
      tile.more = std::make_shared<const RareOutputTileFields>(std::move(more));
    return tile;
  }

  Result<std::vector<PathPart>> path_of_planned(const PlannedTensor& planned,
                                                const std::string& fqn) const {
    const auto path = source_.path(planned.tensor);
    if (planned.fqn.empty()) return std::vector<PathPart>(path.begin(), path.end());
    auto renamed = renamed_path(path, source_.fqn(planned.tensor), fqn);
    if (renamed) return std::move(*renamed);
    return cannot_lower(source_, planned.tensor,
                        "no state dict path can be derived for the name " + fqn);
  }

  Status add_chunk(const PlannedTensor& planned, const PlannedChunk& chunk, TargetTensor& tensor) {
    if (chunk.item) return add_item(planned, chunk, tensor);
    for (const Piece& piece : chunk.pieces) {
      Part part{{translated(chunk.box.offsets, piece.at), sizes_in_new(piece)},
                FromChunk{0, piece.chunk},
                piece.source.offsets};
      part.order = piece.permutation.empty() ? identity_order(piece.at.size()) : piece.permutation;
      part.saved = tensor.dtype;
      tensor.parts.push_back(std::move(part));
    }
    for (const ExternalPiece& side : chunk.external) {
      add_payload({translated(chunk.box.offsets, side.at), side.sizes},
                  {side.file, side.offset, side.length, side.sizes}, side.dtype, tensor);
    }
    SHW_TRY(const std::vector<Box> rest, unfilled_boxes(source_, planned, chunk));
    for (const Box& box : rest)
      SHW_CHECK(add_fill(planned, {translated(chunk.box.offsets, box.offsets), box.sizes}, tensor));
    return {};
  }

  static void add_payload(const Box& box, FromFile payload, Dtype dtype, TargetTensor& tensor) {
    const std::size_t ndim = box.sizes.size();
    Part part{box, std::move(payload), Extents(ndim, 0), identity_order(ndim), dtype};
    if (dtype != tensor.dtype) part.casts = {tensor.dtype};
    tensor.parts.push_back(std::move(part));
  }

  // Adds a chunk's item unchanged, whatever its record says about size and place.
  Status add_item(const PlannedTensor& planned, const PlannedChunk& chunk,
                  TargetTensor& tensor) const {
    const auto place = external_item_place(source_, chunk);
    const bool as_recorded = !place && same(chunk.box.sizes, source_.sizes(*chunk.item));
    const std::size_t ndim = chunk.box.sizes.size();
    if (as_recorded) {
      tensor.parts.push_back({chunk.box, FromChunk{0, *chunk.item}, Extents(ndim, 0),
                              identity_order(ndim), tensor.dtype});
      return {};
    }
    SHW_TRY(const ItemHeader header, place ? read_orphan_header(source_, *chunk.item, *place)
                                           : read_item_header(source_, *chunk.item));
    const auto bytes = checked_mul(static_cast<std::uint64_t>(volume(header.sizes).value_or(0)),
                                   std::uint64_t{size_of(header.dtype)});
    const bool is_plain = same(header.sizes, chunk.box.sizes) && !header.compressed &&
                          !header.big_endian && !header.conjugate && !header.negative &&
                          header.storage_offset == 0 && bytes && *bytes <= header.payload_length &&
                          header.strides == row_major_strides(header.sizes);
    if (!is_plain) {
      return cannot_lower(source_, planned.tensor,
                          "an item does not match its storage record, so parts of it cannot be "
                          "read: repair first, without further steps");
    }
    const auto item = place ? place : source_.item(*chunk.item);
    FromFile payload{source_.file(item->file).path, header.payload_offset, *bytes, header.sizes};
    add_payload(chunk.box, std::move(payload), header.dtype, tensor);
    return {};
  }

  Status add_fill(const PlannedTensor& planned, const Box& box, TargetTensor& tensor) {
    if (planned.fill == Fill::kZero) {
      tensor.parts.push_back({box, FromConstant{}, {}, {}, tensor.dtype});
      return {};
    }
    const bool is_elsewhere = planned.fill == Fill::kReference;
    const bool is_known = !is_elsewhere || planned.fill_source != nullptr;
    const std::uint32_t input =
        is_elsewhere && is_known ? add_or_find_input(planned.fill_source) : 0;
    const auto from = is_known ? all_.inputs[input]->find(planned.fill_from) : std::nullopt;
    if (!from) return cannot_lower(source_, planned.tensor, "no fill source has it");
    return fill_from(input, *from, box, tensor);
  }

  std::uint32_t add_or_find_input(const std::shared_ptr<const Checkpoint>& input) {
    auto found = std::find(all_.inputs.begin(), all_.inputs.end(), input);
    if (found == all_.inputs.end()) found = all_.inputs.insert(found, input);
    return static_cast<std::uint32_t>(found - all_.inputs.begin());
  }

  // Fills the box from another tensor. If tiles of that tensor overlap, the last one counts.
  Status fill_from(std::uint32_t input, TensorId from, const Box& box, TargetTensor& tensor) {
    const Checkpoint& holder = *all_.inputs[input];
    std::vector<Box> open{box};
    auto chunks = holder.chunks(from);
    for (std::uint32_t i = chunks.size(); i-- > 0 && !open.empty();) {
      const Box saved = box_of(holder, chunks[i]);
      if (saved.offsets.size() != box.offsets.size()) continue;
      std::vector<Box> left;
      for (const Box& part : open) {
        auto common = part.sizes.empty() ? std::optional<Box>(part) : intersect(saved, part);
        if (!common) {
          left.push_back(part);
          continue;
        }
        add_filled_part(input, holder.dtype(from), chunks[i], saved, *common, tensor);
        if (part.sizes.empty()) continue;
        for (Box& rest : subtract(part, *common)) left.push_back(std::move(rest));
      }
      open = std::move(left);
    }
    if (open.empty()) return {};
    return cannot_make_target(tensor.fqn, "its fill source has missing elements");
  }

  static void add_filled_part(std::uint32_t input, Dtype dtype, ChunkId chunk, const Box& saved,
                              const Box& box, TargetTensor& tensor) {
    Extents first = box.offsets;
    for (std::size_t d = 0; d < first.size(); ++d) first[d] -= saved.offsets[d];
    Part part{box, FromChunk{input, chunk}, std::move(first), identity_order(box.sizes.size()),
              dtype};
    if (dtype != tensor.dtype) part.casts = {tensor.dtype};
    tensor.parts.push_back(std::move(part));
  }

  TargetState& all_;
  const Checkpoint& source_ = all_.source();
  const bool keeps_files_;
  const bool rewrites_files_;  // true if the files themselves store names
};

Status apply_to_entries(const Plan& plan, TargetState& all) {
  const Checkpoint& source = all.source();
  for (const PlannedEntry& entry : plan.entries) all.objects[entry.object].object = entry.item_of;
  for (const RenamedObject& renamed : plan.objects) {
    TargetNonTensorEntry& object = all.objects[renamed.object];
    auto path = renamed_path(object.path, object.fqn, renamed.fqn);
    if (!path)
      return cannot_make_target(source.objects()[renamed.object].fqn,
                                "no state dict path can be derived for the name " + renamed.fqn);
    object.path = std::move(*path);
    object.fqn = renamed.fqn;
  }
  return {};
}

// FQNs (after the plan) of tensors whose elements are reordered. Earlier ones stay; a permutation
// of blocks adds its tensors.
std::vector<std::string> reordered_by(const Checkpoint& checkpoint, const Plan& plan) {
  std::vector<std::string> all = checkpoint.provenance().reordered;
  for (const Operation& operation : plan.operations) {
    // The gate and up halves of a rank separate even if every tile is only relabelled, and
    // exchanged tiles may be any rank's.
    const Rule* rule = find_rule(operation.rule);
    bool splits_rows_of_rank = rule != nullptr && rule->splits_rows_of_rank;
    if (operation.kind != OperationKind::kPermuteBlocks && !splits_rows_of_rank) continue;
    all.insert(all.end(), operation.subjects.begin(), operation.subjects.end());
  }
  for (const PlannedTensor& tensor : plan.tensors) {
    if (tensor.fqn.empty()) continue;
    std::replace(all.begin(), all.end(), std::string(checkpoint.fqn(tensor.tensor)), tensor.fqn);
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

}  // namespace

Status apply_repair(const Plan& plan, bool keeps_files, TargetState& all) {
  if (plan.tensors.empty() && plan.objects.empty() && plan.entries.empty()) return {};
  FilledRecord filled = losses_after_plan(all.source(), plan);
  std::map<std::string_view, FilledTensor*> losses;
  for (FilledTensor& tensor : filled.tensors) losses[tensor.fqn] = &tensor;
  const std::vector<std::string> reordered = reordered_by(all.source(), plan);
  RepairedTensors repaired(all, keeps_files);
  for (const PlannedTensor& planned : plan.tensors) {
    SHW_TRY(TargetTensor tensor, repaired.target_of_tensor(planned));
    tensor.is_moved = std::binary_search(reordered.begin(), reordered.end(), tensor.fqn);
    if (auto found = losses.find(tensor.fqn); found != losses.end()) {
      FilledTensor& loss = *found->second;
      tensor.loss = {std::move(loss.boxes), loss.fill, loss.fill_from, loss.fill_checkpoint};
    }
    TargetEntry& entry = all.tensors[index_of(planned.tensor)];
    entry.fqn = tensor.fqn;
    entry.made = std::make_shared<const PackedTensor>(std::move(tensor));
  }
  return apply_to_entries(plan, all);
}

}  // namespace shw
