#include "core/transform/target_state.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "core/facts/storage/filled.h"
#include "core/facts/values/computed_tensors.h"
#include "core/model/evidence.h"
#include "core/model/index_only_tensors.h"
#include "core/tiles/exact_tiling.h"
#include "core/transform/box_index.h"

namespace shw {
namespace {

Loss loss_of(const FilledTensor& filled, ExtentsView shape) {
  Loss loss{filled.boxes, filled.fill, filled.fill_from, filled.fill_checkpoint};
  // If single elements cannot be tracked, the whole tensor counts as lost.
  if (!filled.has_all_boxes) loss.boxes = {whole(shape)};
  return loss;
}

// Moves the part's start in its origin to the start of `box`.
void advance_part_start(Part& part, const Box& box) {
  Extents skipped(part.box.offsets.size());
  for (std::size_t d = 0; d < skipped.size(); ++d)
    skipped[d] = std::max<std::int64_t>(box.offsets[d] - part.box.offsets[d], 0);
  for (std::size_t d = 0; d < part.order.size(); ++d) {
    if (part.order[d] >= 0) part.first[static_cast<std::size_t>(part.order[d])] += skipped[d];
  }
  if (!part.scaling) return;
  for (std::size_t e = 0; e < part.scaling->order.size(); ++e) {
    const std::int64_t d = part.scaling->order[e];
    if (d >= 0) part.scaling->first[e] += skipped[static_cast<std::size_t>(d)];
  }
}

}  // namespace

tl::unexpected<Error> cannot_make_target(std::string_view fqn, std::string why,
                                         std::string advice) {
  return fail(ErrorKind::kUnsupported, std::move(why),
              Place{.file = {}, .tensor = std::string(fqn)}, std::move(advice));
}

namespace {

// By file: true if nothing was read from it.
std::vector<bool> files_with_no_items(const Checkpoint& source) {
  std::vector<bool> empty(source.file_count(), true);
  auto take = [&](const std::optional<ItemPlace>& item) {
    if (item && item->file != FileId::kNone) empty[index_of(item->file)] = false;
  };
  for (std::uint32_t c = 0; c < source.chunk_count(); ++c) take(source.item(ChunkId{c}));
  for (const NonTensorEntry& object : source.objects()) take(object.item);
  for (const UnclaimedStorageRecord& unclaimed : source.unclaimed_records()) take(unclaimed.item);
  return empty;
}

using MissingNames = std::set<std::string, std::less<>>;

// Adds records of an index whose entry is missing: a result without them would look complete.
void add_records_without_entry(const Checkpoint& source, MissingNames& nowhere) {
  std::set<std::string_view> objects;
  if (!source.unclaimed_records().empty()) {
    for (const NonTensorEntry& object : source.objects()) objects.insert(object.fqn);
  }
  for (const UnclaimedStorageRecord& unclaimed : source.unclaimed_records()) {
    if (!source.find(unclaimed.fqn) && !objects.contains(unclaimed.fqn))
      nowhere.insert(unclaimed.fqn);
  }
}

void add_missing_names(const Checkpoint& source, MissingNames& nowhere) {
  // With an index, the content of each file is known.
  if (source.format().traits.has_index) return add_records_without_entry(source, nowhere);
  for (const UnclaimedStorageRecord& unclaimed : index_only_tensors(source)) {
    if (!source.find(unclaimed.fqn)) nowhere.insert(unclaimed.fqn);
  }
  std::set<std::string_view> damaged;
  for (const Finding& finding : source.opening_findings()) {
    if (makes_content_unknown(finding))
      damaged.insert(finding.subjects.begin(), finding.subjects.end());
  }
  const std::vector<bool> empty = files_with_no_items(source);
  for (std::size_t f = 0; f < empty.size(); ++f) {
    const FileRow& file = source.files()[f];
    const bool is_unread = file.kind != EntryKind::kFile || damaged.contains(file.path);
    if (empty[f] && file.referenced && is_unread) nowhere.insert(file.path);
  }
}

}  // namespace

TargetState target_state_of(std::shared_ptr<const Checkpoint> checkpoint) {
  TargetState all;
  const Checkpoint& source = *checkpoint;
  all.inputs.push_back(std::move(checkpoint));
  all.tensors.reserve(source.tensor_count());
  for (std::uint32_t t = 0; t < source.tensor_count(); ++t)
    all.tensors.push_back({std::string(source.fqn(TensorId{t})), TensorId{t}});
  for (std::size_t i = 0; i < source.objects().size(); ++i) {
    auto path = source.object_path(i);
    all.objects.push_back({i, source.objects()[i].fqn, {path.begin(), path.end()}});
  }
  add_missing_names(source, all.nowhere);
  if (source.directory() == nullptr) return all;
  for (const FilledTensor& tensor : filled_report_of(source).tensors) {
    auto id = source.find(tensor.fqn);
    if (id) all.losses[tensor.fqn] = loss_of(tensor, source.shape(*id));
  }
  return all;
}

Result<TargetTensor> target_tensor(const TargetState& all, std::uint32_t input, TensorId tensor) {
  const Checkpoint& holder = *all.inputs[input];
  TargetTensor out;
  out.fqn = holder.fqn(tensor);
  out.dtype = holder.dtype(tensor);
  out.requires_grad = holder.requires_grad(tensor);
  out.shape = copy_of(holder.shape(tensor));
  out.path.assign(holder.path(tensor).begin(), holder.path(tensor).end());
  out.is_cast = is_rounded_in_computing(holder, tensor);
  if (input == 0) {
    out.before = tensor;
    if (auto loss = all.losses.find(out.fqn); loss != all.losses.end()) out.loss = loss->second;
  }
  Extents order = identity_order(out.shape.size());
  for (ChunkId chunk : holder.chunks(tensor)) {
    ExtentsView offsets = holder.offsets(chunk), sizes = holder.sizes(chunk);
    if (!is_inside(offsets, sizes, out.shape)) {
      return cannot_make_target(out.fqn,
                                "a tile of it, [" + to_text(offsets) + " + " + to_text(sizes) +
                                    "), is not a box of " + to_text(out.shape),
                                "repair it first: `check` says what is wrong");
    }
    Box box{copy_of(offsets), copy_of(sizes)};
    out.tiles.push_back({box, holder.writer(chunk).value_or(0)});
    if (is_empty(box)) continue;
    out.parts.push_back(
        {std::move(box), FromChunk{input, chunk}, Extents(order.size(), 0), order, out.dtype});
  }
  return out;
}

Result<std::vector<Box>> holes_in(const TargetTensor& tensor) {
  std::vector<Box> boxes;
  for (const Part& part : tensor.parts) boxes.push_back(part.box);
  if (tiles_exactly(boxes, tensor.shape)) return std::vector<Box>{};
  if (!are_disjoint(boxes)) {
    return cannot_make_target(tensor.fqn, "two tiles of it hold the same elements",
                              "repair it first: `check` says which");
  }
  auto holes = complement(boxes, tensor.shape);
  if (!holes) return cannot_make_target(tensor.fqn, "it has more holes than can be listed");
  return std::move(*holes);
}

Extents identity_order(std::size_t ndim) {
  Extents order(ndim);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

BoxMapping shift_of(ExtentsView shape, Extents to) {
  return {whole(shape), std::move(to), identity_order(shape.size())};
}

std::optional<Box> moved_box(const Box& box, const BoxMapping& move) {
  auto common = box.sizes.empty() ? std::optional(box) : intersect(box, move.from);
  if (!common) return std::nullopt;
  Box out{move.to, Extents(move.to.size(), 1)};
  for (std::size_t d = 0; d < move.order.size(); ++d) {
    if (move.order[d] < 0) continue;
    auto old = static_cast<std::size_t>(move.order[d]);
    out.offsets[d] += common->offsets[old] - move.from.offsets[old];
    out.sizes[d] = common->sizes[old];
  }
  return out;
}

std::optional<Part> mapped_part(const Part& part, const BoxMapping& move) {
  auto box = moved_box(part.box, move);
  if (!box) return std::nullopt;
  Part out = part;
  advance_part_start(out, move.from);
  out.box = std::move(*box);
  if (!std::holds_alternative<FromConstant>(part.from)) {
    out.order.assign(move.order.size(), -1);
    for (std::size_t d = 0; d < move.order.size(); ++d) {
      if (move.order[d] >= 0) out.order[d] = part.order[static_cast<std::size_t>(move.order[d])];
    }
  }
  if (!part.scaling) return out;
  for (std::size_t e = 0; e < part.scaling->order.size(); ++e) {
    std::int64_t old = part.scaling->order[e];
    if (old < 0) continue;
    auto now = std::find(move.order.begin(), move.order.end(), old);
    out.scaling->order[e] = now == move.order.end() ? -1 : now - move.order.begin();
  }
  return out;
}

std::optional<Part> part_inside(const Part& part, const Box& box) {
  if (part.box.sizes.empty()) return part;
  auto common = intersect(part.box, box);
  if (!common) return std::nullopt;
  Part out = part;
  advance_part_start(out, box);
  out.box = std::move(*common);
  return out;
}

std::vector<Part> subtract_box_from_part(const Part& part, const Box& box) {
  std::vector<Part> out;
  if (part.box.sizes.empty()) return out;
  for (Box& rest : subtract(part.box, box)) {
    if (auto kept = part_inside(part, rest)) out.push_back(std::move(*kept));
  }
  return out;
}

namespace {

// The first dim along which a mapping does not take everything.
std::size_t first_partly_mapped_dim(const TargetTensor& tensor, std::span<const BoxMapping> moves) {
  for (const BoxMapping& move : moves) {
    for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
      if (move.from.sizes[d] != tensor.shape[d]) return d;
    }
  }
  return 0;
}

// Calls `take` for the pairs of mapping and box that overlap: testing thousands of mappings against
// thousands of parts would be millions of tests.
template <class Thing, class BoxOf, class Take>
void visit_mapped_boxes(const std::vector<Thing>& things, const BoxOf& box_of,
                        std::span<const BoxMapping> moves, std::size_t dim, const Take& take) {
  constexpr std::size_t kFewMoves = 8;
  if (moves.size() < kFewMoves || things.empty() || box_of(things.front()).sizes.empty()) {
    for (const BoxMapping& move : moves) {
      for (const Thing& thing : things) take(thing, move);
    }
    return;
  }
  BoxIndex index(dim);
  for (std::uint32_t i = 0; i < things.size(); ++i) index.add(box_of(things[i]), i);
  index.sort();
  std::vector<std::uint32_t> near;
  for (const BoxMapping& move : moves) {
    index.near(move.from, near);
    for (std::uint32_t i : near) take(things[i], move);
  }
}

}  // namespace

void append_mapped(const TargetTensor& tensor, std::span<const BoxMapping> moves,
                   TileMovement tiles, TargetTensor& into) {
  const std::size_t lost_before = into.loss.boxes.size();
  const std::size_t dim = first_partly_mapped_dim(tensor, moves);
  visit_mapped_boxes(
      tensor.parts, [](const Part& part) -> const Box& { return part.box; }, moves, dim,
      [&](const Part& part, const BoxMapping& move) {
        if (auto moved = mapped_part(part, move)) into.parts.push_back(std::move(*moved));
      });
  visit_mapped_boxes(
      tensor.loss.boxes, [](const Box& box) -> const Box& { return box; }, moves, dim,
      [&](const Box& box, const BoxMapping& move) {
        if (auto moved = moved_box(box, move)) into.loss.boxes.push_back(std::move(*moved));
      });
  if (tiles == TileMovement::kMoveWithElements) {
    visit_mapped_boxes(
        tensor.tiles, [](const TargetChunk& tile) -> const Box& { return tile.box; }, moves, dim,
        [&](const TargetChunk& tile, const BoxMapping& move) {
          if (auto moved = moved_box(tile.box, move))
            into.tiles.push_back({std::move(*moved), tile.writer});
        });
  }
  if (tiles == TileMovement::kKeepPlace) into.tiles = tensor.tiles;
  into.is_cast = into.is_cast || tensor.is_cast;
  into.requires_grad = into.requires_grad || tensor.requires_grad;
  if (into.loss.boxes.size() == lost_before) return;
  merge_fill_source(into.loss, tensor.loss, lost_before == 0);
}

std::vector<Part> parts_of_tile(const TargetTensor& tensor, const Box& tile) {
  std::vector<Part> parts;
  for (const Part& part : tensor.parts) {
    if (part.box == tile) return {part};
    if (auto cut = part_inside(part, tile)) parts.push_back(std::move(*cut));
  }
  return parts;
}

bool keeps_every_value(const TargetState& all) {
  std::set<std::size_t> replaced, used;
  for (const TargetNonTensorEntry& object : all.objects) {
    if (object.object != object.own) replaced.insert(object.own);
    used.insert(object.object);
  }
  return std::includes(used.begin(), used.end(), replaced.begin(), replaced.end());
}

}  // namespace shw
