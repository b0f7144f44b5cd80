#include "core/repair/lower/outputs.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "core/formats/common/filled_attribute.h"
#include "core/repair/lower/item_place.h"
#include "core/repair/plan/entries.h"
#include "core/repair/plan/renamed.h"
#include "core/repair/run/lost.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

OutputTile kept_tile(const Checkpoint& checkpoint, ChunkId chunk) {
  OutputTile tile;
  tile.box = box_of(checkpoint, chunk);
  tile.writer = checkpoint.writer(chunk).value_or(0);
  tile.kept = chunk;
  return tile;
}

OutputTile planned_tile(const Checkpoint& checkpoint, const PlannedChunk& chunk) {
  OutputTile tile;
  tile.box = chunk.box;
  tile.writer = chunk.writer;
  tile.kept = chunk.item;
  OutputTileMore more;
  if (chunk.item) more.place = place_elsewhere(checkpoint, chunk);
  for (const Piece& piece : chunk.pieces) {
    auto item = chunk.item ? std::nullopt : checkpoint.item(piece.chunk);
    bool known = item && std::find(more.made_of.begin(), more.made_of.end(), item->file) !=
                             more.made_of.end();
    if (item && !known) more.made_of.push_back(item->file);
  }
  if (more.place || !more.made_of.empty())
    tile.more = std::make_shared<const OutputTileMore>(std::move(more));
  return tile;
}

tl::unexpected<Error> cannot_say(std::string_view fqn) {
  return fail(ErrorKind::kUnsupported, "its path in the state dict cannot be said for its new name",
              Place{.file = {}, .tensor = std::string(fqn)});
}

Status give_new_name(const Checkpoint& checkpoint, const PlannedTensor& planned,
                     OutputTensor& tensor) {
  if (planned.fqn.empty()) return {};
  auto path = path_after(checkpoint.path(planned.tensor), tensor.fqn, planned.fqn);
  if (!path) return cannot_say(tensor.fqn);
  tensor.fqn = planned.fqn;
  tensor.path = std::move(*path);
  return {};
}

}  // namespace

// What was reordered before stays so; a permutation of blocks adds its tensors.
std::vector<std::string> reordered_by(const Checkpoint& checkpoint, const Plan& plan) {
  std::vector<std::string> all = checkpoint.provenance().reordered;
  for (const Operation& operation : plan.operations) {
    // Gate and up of one rank part ways even where every tile is only relabelled.
    // And tiles that were exchanged may be any rank's.
    const Rule* rule = find_rule(operation.rule);
    bool parts_ranks = rule != nullptr && rule->parts_ranks;
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

namespace {

Status add_objects(const Checkpoint& checkpoint, const Plan& plan, Outputs& outputs) {
  std::vector<std::size_t> items = items_after(checkpoint, plan);
  for (std::size_t i = 0; i < checkpoint.objects().size(); ++i) {
    const NonTensorEntry& said_by = checkpoint.objects()[items[i]];
    auto path = checkpoint.object_path(i);
    outputs.objects.push_back({checkpoint.objects()[i].fqn,
                               said_by.item,
                               said_by.transforms,
                               {path.begin(), path.end()}});
  }
  for (const RenamedObject& renamed : plan.objects) {
    OutputObject& object = outputs.objects[renamed.object];
    auto new_path = path_after(object.path, object.fqn, renamed.fqn);
    if (!new_path) return cannot_say(object.fqn);
    object.fqn = renamed.fqn;
    object.path = std::move(*new_path);
  }
  return {};
}

// Records that still belong to nothing. Two under one key would be one of them; those that lead out
// of the checkpoint are left.
void add_strays(const Checkpoint& checkpoint, Outputs& outputs) {
  if (checkpoint.unclaimed_records().empty() || checkpoint.format().rewrite != Rewrite::kIndex)
    return;
  using Key = std::pair<std::string_view, std::optional<Extents>>;
  std::set<std::string_view> names;
  for (const UnclaimedStorageRecord& unclaimed : checkpoint.unclaimed_records())
    names.insert(unclaimed.fqn);
  std::set<Key> taken;
  for (const OutputTensor& tensor : outputs.tensors) {
    if (!names.contains(tensor.fqn)) continue;
    for (const OutputTile& tile : tensor.tiles) taken.emplace(tensor.fqn, tile.box.offsets);
  }
  for (const OutputObject& object : outputs.objects) taken.emplace(object.fqn, std::nullopt);
  for (const UnclaimedStorageRecord& unclaimed : checkpoint.unclaimed_records()) {
    const bool leads_nowhere = unclaimed.item.file == FileId::kNone ||
                               !checkpoint.file(unclaimed.item.file).safe ||
                               unclaimed.item.offset < 0 || unclaimed.item.length < 0;
    if (!leads_nowhere && taken.emplace(unclaimed.fqn, unclaimed.offsets).second)
      outputs.unclaimed_records.push_back(
          {unclaimed.fqn, unclaimed.offsets, unclaimed.item, unclaimed.transforms});
  }
}

// What was never saved is missing in the result as well.
void add_only_in_planner(const Provenance& provenance, Outputs& outputs) {
  if (provenance.only_in_planner.empty()) return;
  std::set<std::string_view> there;
  for (const OutputTensor& tensor : outputs.tensors) there.insert(tensor.fqn);
  for (const OutputObject& object : outputs.objects) there.insert(object.fqn);
  for (const std::string& fqn : provenance.only_in_planner) {
    if (!there.contains(fqn)) outputs.only_in_planner.push_back(fqn);
  }
}

}  // namespace

void add_left_records(const Checkpoint& checkpoint, Outputs& outputs) {
  add_strays(checkpoint, outputs);
  add_only_in_planner(checkpoint.provenance(), outputs);
}

namespace {

void add_filled(FilledRecord filled, Outputs& outputs) {
  for (const FilledTensor& tensor : filled.tensors) outputs.filled.push_back(tensor.fqn);
  outputs.filled_text = [filled = std::move(filled)](const std::vector<std::string>& fqns) {
    return filled_attribute(filled.of_tensors(fqns));
  };
}

}  // namespace

std::unordered_map<std::uint32_t, std::size_t> planned_by_id(const Plan& plan) {
  std::unordered_map<std::uint32_t, std::size_t> planned;
  for (std::size_t i = 0; i < plan.tensors.size(); ++i)
    planned.emplace(static_cast<std::uint32_t>(index_of(plan.tensors[i].tensor)), i);
  return planned;
}

std::vector<std::pair<std::string, std::string>> other_attributes(const Checkpoint& checkpoint) {
  auto attributes = checkpoint.provenance().plain_attributes;
  std::erase_if(attributes, [](const auto& one) { return one.first == kFilledAttribute; });
  return attributes;
}

Result<Outputs> outputs_after(const Checkpoint& checkpoint, const Plan& plan,
                              const std::string& checkpoint_id) {
  Outputs outputs;
  outputs.source = &checkpoint;
  const Provenance& provenance = checkpoint.provenance();
  if (!provenance.path_class.empty()) outputs.checkpoint_id = checkpoint_id;
  outputs.save_id = provenance.save_id;
  outputs.reordered = reordered_by(checkpoint, plan);
  outputs.attributes = other_attributes(checkpoint);
  add_filled(filled_after(checkpoint, plan), outputs);
  auto planned = planned_by_id(plan);
  outputs.tensors.reserve(checkpoint.tensor_count());
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t) {
    TensorId id{t};
    OutputTensor tensor;
    tensor.fqn = checkpoint.fqn(id);
    tensor.dtype = checkpoint.dtype(id);
    tensor.requires_grad = checkpoint.requires_grad(id);
    tensor.path.assign(checkpoint.path(id).begin(), checkpoint.path(id).end());
    tensor.before = id;
    if (auto found = planned.find(t); found != planned.end()) {
      const PlannedTensor& change = plan.tensors[found->second];
      SHW_CHECK(give_new_name(checkpoint, change, tensor));
      tensor.shape = change.shape;
      for (const PlannedChunk& chunk : change.chunks)
        tensor.tiles.push_back(planned_tile(checkpoint, chunk));
    } else {
      tensor.shape = copy_of(checkpoint.shape(id));
      for (ChunkId chunk : checkpoint.chunks(id))
        tensor.tiles.push_back(kept_tile(checkpoint, chunk));
    }
    outputs.tensors.push_back(std::move(tensor));
  }
  SHW_CHECK(add_objects(checkpoint, plan, outputs));
  add_left_records(checkpoint, outputs);
  return outputs;
}

}  // namespace shw
