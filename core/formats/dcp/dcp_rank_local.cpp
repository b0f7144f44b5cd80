// torch >= 2.9 with use_collectives=False: each rank writes `__R.metadata` for its own items only.
// Each is opened separately, then merged by tensor name.
#include <map>
#include <optional>
#include <unordered_map>

#include "core/formats/dcp/dcp_read.h"
#include "core/model/builder.h"

namespace shw {
namespace {

std::vector<PathPart> to_vector(std::span<const PathPart> path) {
  return {path.begin(), path.end()};
}

struct RankPart {
  std::size_t rank;  // index into the parts
  TensorId tensor;
  std::uint32_t writer;
};

ItemPlace place_in(CheckpointBuilder& builder, const Checkpoint& part, ChunkId chunk) {
  auto item = part.item(chunk);
  if (!item) return {};
  return {builder.file(part.file(item->file).path), item->offset, item->length};
}

std::string words_of(const Checkpoint& part, TensorId tensor, std::uint32_t rank) {
  return rank_local_name(rank) + " has it as " + std::string(name(part.dtype(tensor))) + " " +
         to_text(part.shape(tensor));
}

bool have_equal_records(const Checkpoint& one, TensorId a, const Checkpoint& two, TensorId b) {
  return one.dtype(a) == two.dtype(b) && same(one.shape(a), two.shape(b));
}

// Each rank loads by its own metadata, so errors only appear if other ranks load the file.
void report_differing_rank_records(const std::vector<std::shared_ptr<const Checkpoint>>& parts,
                                   const std::vector<RankPart>& where, CheckpointBuilder& builder) {
  const RankPart& first = where.front();
  const Checkpoint& lowest = *parts[first.rank];
  for (const RankPart& part : where) {
    const Checkpoint& own = *parts[part.rank];
    if (have_equal_records(own, part.tensor, lowest, first.tensor)) continue;
    Finding finding{.rule = "bad-record", .severity = Severity::kWarning};
    finding.subjects.emplace_back(lowest.fqn(first.tensor));
    finding.cause = "Ranks disagree about " + finding.subjects.front() + ": " +
                    words_of(lowest, first.tensor, first.writer) + ", " +
                    words_of(own, part.tensor, part.writer) +
                    ". Each rank loads what it saved, but their shards do not form one tensor.";
    finding.evidence.emplace_back("file", rank_local_name(part.writer));
    builder.add_finding(std::move(finding));
    return;
  }
}

// True if a rank's tensor has another shape than the lowest rank's, so its tiles are not merged but
// checked like replicas.
bool has_rank_specific_shape(const Checkpoint& own, TensorId tensor, const Checkpoint& lowest,
                             TensorId first) {
  auto is_whole = [](const Checkpoint& c, TensorId of) {
    return c.chunks(of).size() == 1 && same(c.sizes(c.chunks(of)[0]), c.shape(of));
  };
  return !have_equal_records(own, tensor, lowest, first) && is_whole(own, tensor) &&
         is_whole(lowest, first);
}

// Merges one tensor's tiles, lowest rank first. Further tiles of the same box become replicas.
void merge_tensor(const std::vector<std::shared_ptr<const Checkpoint>>& parts,
                  const std::vector<RankPart>& where, CheckpointBuilder& builder) {
  const Checkpoint& lowest = *parts[where.front().rank];
  TensorId first = where.front().tensor;
  report_differing_rank_records(parts, where, builder);
  TensorId merged = builder.add_tensor(std::string(lowest.fqn(first)), lowest.dtype(first),
                                       lowest.shape(first), lowest.requires_grad(first));
  if (auto path = lowest.path(first); !path.empty()) builder.set_path(merged, to_vector(path));
  std::map<std::pair<Extents, Extents>, ChunkId> seen;
  std::optional<ChunkId> lowest_chunk;
  for (const RankPart& part : where) {
    const Checkpoint& checkpoint = *parts[part.rank];
    for (ChunkId chunk : checkpoint.chunks(part.tensor)) {
      auto box = std::pair(copy_of(checkpoint.offsets(chunk)), copy_of(checkpoint.sizes(chunk)));
      ItemPlace place = place_in(builder, checkpoint, chunk);
      auto own = checkpoint.transforms(chunk);
      std::vector<std::string> transforms(own.begin(), own.end());
      std::optional<ChunkId> copy_of_chunk;
      if (auto first_of = seen.find(box); first_of != seen.end())
        copy_of_chunk = first_of->second;
      else if (has_rank_specific_shape(checkpoint, part.tensor, lowest, first))
        copy_of_chunk = lowest_chunk;
      if (copy_of_chunk) {
        if (place.file == FileId::kNone) continue;
        StorageId storage = builder.add_storage(place, nullptr, std::move(transforms));
        builder.add_replica({*copy_of_chunk, storage, part.writer});
        continue;
      }
      ChunkId added = builder.add_chunk(checkpoint.offsets(chunk), checkpoint.sizes(chunk), place);
      if (!transforms.empty()) builder.set_transforms(added, std::move(transforms));
      if (!lowest_chunk) lowest_chunk = added;
      seen.emplace(std::move(box), added);
    }
  }
}

// Keeps the lowest rank's entry, and the places of the others'.
void merge_object(const std::vector<std::shared_ptr<const Checkpoint>>& parts,
                  const std::vector<std::pair<std::size_t, std::size_t>>& where,
                  CheckpointBuilder& builder) {
  auto in_builder = [&](const Checkpoint& part, ItemPlace place) {
    if (place.file != FileId::kNone) place.file = builder.file(part.file(place.file).path);
    return place;
  };
  const auto [lowest, first] = where.front();
  NonTensorEntry object = parts[lowest]->objects()[first];
  if (object.item) object.item = in_builder(*parts[lowest], *object.item);
  for (std::size_t i = 1; i < where.size(); ++i) {
    const Checkpoint& part = *parts[where[i].first];
    const auto& item = part.objects()[where[i].second].item;
    if (item) object.of_other_ranks.push_back(in_builder(part, *item));
  }
  builder.add_object(std::move(object), to_vector(parts[lowest]->object_path(first)));
}

}  // namespace

Result<std::shared_ptr<const Checkpoint>> read_dcp_rank_local(
    std::shared_ptr<const Directory> directory, const std::vector<std::uint32_t>& ranks,
    Progress* progress) {
  std::vector<std::shared_ptr<const Checkpoint>> parts;
  for (std::uint32_t rank : ranks) {
    SHW_TRY(auto source, directory->open(rank_local_name(rank)));
    SHW_TRY(auto part, read_dcp_metadata(*source, nullptr, progress));
    parts.push_back(std::move(part));
  }
  CheckpointBuilder builder;
  builder.set_format(kDcpRankLocalFormat);
  builder.set_directory(std::move(directory));
  builder.set_provenance(parts.front()->provenance());

  std::unordered_map<std::string_view, std::size_t> position;
  std::vector<std::vector<RankPart>> tensors;
  std::map<std::string_view, std::vector<std::pair<std::size_t, std::size_t>>> objects;
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    const Checkpoint& part = *parts[rank];
    for (std::uint32_t t = 0; t < part.tensor_count(); ++t) {
      auto [found, added] = position.try_emplace(part.fqn(TensorId{t}), tensors.size());
      if (added) tensors.emplace_back();
      tensors[found->second].push_back({rank, TensorId{t}, ranks[rank]});
    }
    for (std::size_t o = 0; o < part.objects().size(); ++o)
      objects[part.objects()[o].fqn].emplace_back(rank, o);
    for (const Finding& finding : part.opening_findings()) builder.add_finding(finding);
    for (UnclaimedStorageRecord unclaimed : part.unclaimed_records()) {
      unclaimed.item.file = builder.file(part.file(unclaimed.item.file).path);
      builder.add_unclaimed_record(std::move(unclaimed));
    }
  }
  for (const auto& where : tensors) merge_tensor(parts, where, builder);
  for (const auto& [fqn, where] : objects) merge_object(parts, where, builder);
  return builder.finish();
}

}  // namespace shw
