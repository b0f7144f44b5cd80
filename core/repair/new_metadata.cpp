#include <algorithm>
#include <unordered_map>

#include "core/base/checked.h"
#include "core/formats/common/filled_attribute.h"
#include "core/repair/entries.h"
#include "core/repair/item_place.h"
#include "core/repair/lost.h"
#include "core/repair/lower.h"
#include "core/repair/renamed.h"
#include "core/repair/steps.h"

namespace shw {
namespace {

using PlannedById = std::unordered_map<std::uint32_t, std::size_t>;

PlannedById planned_by_id(const Plan& plan) {
  PlannedById planned;
  for (std::size_t i = 0; i < plan.tensors.size(); ++i)
    planned.emplace(static_cast<std::uint32_t>(index_of(plan.tensors[i].tensor)), i);
  return planned;
}

Result<DcpItem> item_as_it_is(const Checkpoint& checkpoint, const std::optional<ItemPlace>& place,
                              std::string_view fqn) {
  auto offset = place ? narrow<std::uint64_t>(place->offset) : std::nullopt;
  auto length = place ? narrow<std::uint64_t>(place->length) : std::nullopt;
  if (!offset || !length) {
    return fail(ErrorKind::kUnsupported,
                "has a tile without a usable storage record, which cannot be written again",
                Place{.file = {}, .tensor = std::string(fqn)});
  }
  return DcpItem{checkpoint.file(place->file).path, *offset, *length};
}

Result<DcpItem> item_of(const Checkpoint& checkpoint, ChunkId chunk,
                        const std::optional<ItemPlace>& place = std::nullopt) {
  auto fqn = checkpoint.fqn(checkpoint.tensor_of(chunk));
  SHW_TRY(DcpItem item, item_as_it_is(checkpoint, place ? place : checkpoint.item(chunk), fqn));
  auto transforms = checkpoint.transforms(chunk);
  item.transforms.assign(transforms.begin(), transforms.end());
  return item;
}

Status add_planned_chunks(const Checkpoint& checkpoint, const Plan& plan, std::size_t index,
                          const MadeItems& made, DcpTensor& tensor) {
  const PlannedTensor& planned = plan.tensors[index];
  tensor.shape = planned.shape;
  for (std::size_t c = 0; c < planned.chunks.size(); ++c) {
    const PlannedChunk& chunk = planned.chunks[c];
    DcpChunk out{chunk.box.offsets, chunk.box.sizes, {}};
    if (chunk.item) {
      SHW_TRY(out.item, item_of(checkpoint, *chunk.item, place_elsewhere(checkpoint, chunk)));
    } else {
      auto found = made.find({index, c});
      if (found == made.end())
        return fail(ErrorKind::kUsage, "a new tile was not made",
                    Place{.file = {}, .tensor = tensor.fqn});
      out.item = found->second;
    }
    tensor.chunks.push_back(std::move(out));
  }
  return {};
}

tl::unexpected<Error> cannot_say(std::string_view fqn) {
  return fail(ErrorKind::kUnsupported, "its path in the state dict cannot be said for its new name",
              Place{.file = {}, .tensor = std::string(fqn)});
}

Status give_new_name(const Checkpoint& checkpoint, const PlannedTensor& planned,
                     DcpTensor& tensor) {
  if (planned.fqn.empty()) return {};
  auto path = path_after(checkpoint.path(planned.tensor), tensor.fqn, planned.fqn);
  if (!path) return cannot_say(tensor.fqn);
  tensor.fqn = planned.fqn;
  tensor.path = std::move(*path);
  return {};
}

// Boxes with the place of their items, in one order, so that two lists can be compared.
struct Tile {
  Extents offsets, sizes;
  std::string item;  // "file:offset+length"; empty where only its box is given
  auto operator<=>(const Tile&) const = default;
};

std::string place_text(const Checkpoint& checkpoint, ChunkId chunk) {
  auto item = checkpoint.item(chunk);
  if (!item) return "none";
  return checkpoint.file(item->file).path + ":" + std::to_string(item->offset) + "+" +
         std::to_string(item->length);
}

std::vector<Tile> tiles_of(const Checkpoint& checkpoint, TensorId tensor, bool with_items) {
  std::vector<Tile> tiles;
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    tiles.push_back({copy_of(checkpoint.offsets(chunk)), copy_of(checkpoint.sizes(chunk)),
                     with_items ? place_text(checkpoint, chunk) : ""});
  }
  std::sort(tiles.begin(), tiles.end());
  return tiles;
}

std::vector<Tile> tiles_of(const PlannedTensor& planned) {
  std::vector<Tile> tiles;
  for (const PlannedChunk& chunk : planned.chunks)
    tiles.push_back({chunk.box.offsets, chunk.box.sizes, ""});
  std::sort(tiles.begin(), tiles.end());
  return tiles;
}

// What was reordered before stays so; a permutation of blocks adds its tensors.
std::vector<std::string> reordered_after(const Checkpoint& checkpoint, const Plan& plan) {
  std::vector<std::string> all = checkpoint.provenance().reordered;
  for (const Operation& operation : plan.operations) {
    // Gate and up of one rank part ways even where every tile is only relabelled.
    // And tiles that were exchanged may be any rank's.
    bool parts_ranks = operation.rule == "fused-per-rank" || operation.rule == "tiles-exchanged";
    if (operation.kind != OperationKind::kPermuteBlocks && !parts_ranks) continue;
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

// All but the record of what is filled, which is written anew.
std::vector<std::pair<std::string, std::string>> other_attributes(const Checkpoint& checkpoint) {
  auto attributes = checkpoint.provenance().plain_attributes;
  std::erase_if(attributes, [](const auto& one) { return one.first == kFilledAttribute; });
  return attributes;
}

}  // namespace

Result<DcpMetadata> new_metadata(const Checkpoint& checkpoint, const Plan& plan,
                                 const MadeItems& made, const std::string& checkpoint_id) {
  DcpMetadata metadata;
  const Provenance& provenance = checkpoint.provenance();
  if (!provenance.path_class.empty()) metadata.checkpoint_id = checkpoint_id;
  metadata.save_id = provenance.save_id;
  metadata.reordered = reordered_after(checkpoint, plan);
  metadata.plain_attributes = other_attributes(checkpoint);
  std::string filled = filled_attribute(filled_after(checkpoint, plan));
  if (!filled.empty())
    metadata.plain_attributes.emplace_back(kFilledAttribute, pickled_text(filled));
  PlannedById planned = planned_by_id(plan);
  metadata.tensors.reserve(checkpoint.tensor_count());
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t) {
    TensorId id{t};
    DcpTensor tensor;
    tensor.fqn = checkpoint.fqn(id);
    tensor.dtype = checkpoint.dtype(id);
    tensor.requires_grad = checkpoint.requires_grad(id);
    tensor.path.assign(checkpoint.path(id).begin(), checkpoint.path(id).end());
    if (auto found = planned.find(t); found != planned.end()) {
      SHW_CHECK(give_new_name(checkpoint, plan.tensors[found->second], tensor));
      SHW_CHECK(add_planned_chunks(checkpoint, plan, found->second, made, tensor));
    } else {
      tensor.shape = copy_of(checkpoint.shape(id));
      for (ChunkId chunk : checkpoint.chunks(id)) {
        SHW_TRY(DcpItem item, item_of(checkpoint, chunk));
        tensor.chunks.push_back({copy_of(checkpoint.offsets(chunk)),
                                 copy_of(checkpoint.sizes(chunk)), std::move(item)});
      }
    }
    metadata.tensors.push_back(std::move(tensor));
  }
  std::vector<std::size_t> items = items_after(checkpoint, plan);
  for (std::size_t i = 0; i < checkpoint.objects().size(); ++i) {
    const ObjectRow& row = checkpoint.objects()[i];
    const ObjectRow& said_by = checkpoint.objects()[items[i]];
    SHW_TRY(DcpItem item, item_as_it_is(checkpoint, said_by.item, row.fqn));
    item.transforms = said_by.transforms;
    auto path = checkpoint.object_path(i);
    metadata.objects.push_back({row.fqn, std::move(item), {path.begin(), path.end()}});
  }
  for (const RenamedObject& renamed : plan.objects) {
    DcpObject& object = metadata.objects[renamed.object];
    auto new_path = path_after(object.path, object.fqn, renamed.fqn);
    if (!new_path) return cannot_say(object.fqn);
    object.fqn = renamed.fqn;
    object.path = std::move(*new_path);
  }
  return metadata;
}

Status compare_metadata(const Checkpoint& checkpoint, const Plan& plan, const Checkpoint& result) {
  auto differs = [](std::string_view fqn, const std::string& what) {
    return fail(ErrorKind::kIo, "what was written does not say what was planned: " + what,
                Place{.file = kMetadataFile, .tensor = std::string(fqn)});
  };
  if (result.tensor_count() != checkpoint.tensor_count() ||
      result.objects().size() != checkpoint.objects().size()) {
    return differs("", "another number of entries");
  }
  if (other_attributes(result) != other_attributes(checkpoint))
    return differs("", "other attributes");
  bool same_places = checkpoint.format().rewrite == Rewrite::kIndex;
  PlannedById planned = planned_by_id(plan);
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t) {
    auto found = planned.find(t);
    const PlannedTensor* change = found == planned.end() ? nullptr : &plan.tensors[found->second];
    std::string_view fqn =
        change != nullptr ? fqn_after(checkpoint, *change) : checkpoint.fqn(TensorId{t});
    auto made = result.find(fqn);
    if (!made || result.dtype(*made) != checkpoint.dtype(TensorId{t}))
      return differs(fqn, "it is missing, or of another dtype");
    if (!same(result.shape(*made),
              change != nullptr ? change->shape : checkpoint.shape(TensorId{t})))
      return differs(fqn, "another shape");
    bool as_planned = change != nullptr ? tiles_of(result, *made, false) == tiles_of(*change)
                                        : tiles_of(result, *made, same_places) ==
                                              tiles_of(checkpoint, TensorId{t}, same_places);
    if (!as_planned) return differs(fqn, "other tiles");
  }
  return {};
}

Status check_items_are_there(const Checkpoint& checkpoint) {
  auto check = [&](const std::optional<ItemPlace>& item, std::string_view fqn) -> Status {
    if (item && is_reachable(checkpoint, *item)) return {};
    return fail(
        ErrorKind::kUnsupported,
        "cannot be carried over: its bytes are not where the metadata says",
        {item ? checkpoint.file(item->file).path : std::string(), std::nullopt, std::string(fqn)},
        "bring the file back, then repair");
  };
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t) {
    for (ChunkId chunk : checkpoint.chunks(TensorId{t}))
      SHW_CHECK(check(checkpoint.item(chunk), checkpoint.fqn(TensorId{t})));
  }
  for (const ObjectRow& object : checkpoint.objects()) SHW_CHECK(check(object.item, object.fqn));
  return {};
}

}  // namespace shw
