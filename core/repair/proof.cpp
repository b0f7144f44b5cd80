#include "core/repair/proof.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/base/checked.h"
#include "core/base/hash.h"
#include "core/base/parallel.h"
#include "core/base/words.h"
#include "core/formats/items.h"
#include "core/repair/entries.h"
#include "core/repair/item_place.h"
#include "core/repair/lost.h"
#include "core/repair/lower.h"
#include "core/tiles/exact_tiling.h"

namespace shw {
namespace {

using Key = std::tuple<std::uint32_t, std::int64_t, std::int64_t>;

Key key_of(const ItemPlace& place) {
  return {static_cast<std::uint32_t>(index_of(place.file)), place.offset, place.length};
}

std::map<Key, std::vector<std::uint32_t>> chunks_by_item(const Checkpoint& checkpoint) {
  std::map<Key, std::vector<std::uint32_t>> chunks;
  for (std::uint32_t i = 0; i < checkpoint.chunk_count(); ++i) {
    if (auto item = checkpoint.item(ChunkId{i})) chunks[key_of(*item)].push_back(i);
  }
  return chunks;
}

std::vector<Box> chunk_boxes(const Checkpoint& checkpoint, TensorId tensor) {
  std::vector<Box> boxes;
  for (ChunkId chunk : checkpoint.chunks(tensor)) boxes.push_back(box_of(checkpoint, chunk));
  return boxes;
}

// The labels of a tensor as a hash: items alone would not tell a relabelled tensor from the broken
// one.
std::string layout_hash(const Checkpoint& checkpoint, TensorId tensor) {
  std::vector<std::int64_t> numbers;
  auto add = [&](ExtentsView extents) {
    numbers.push_back(static_cast<std::int64_t>(extents.size()));
    numbers.insert(numbers.end(), extents.begin(), extents.end());
  };
  add(checkpoint.shape(tensor));
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    add(checkpoint.offsets(chunk));
    add(checkpoint.sizes(chunk));
  }
  return to_hex(hash_of(std::as_bytes(std::span(numbers))));
}

// Which boxes of the new tensor came over as items, and from which old chunk.
Status check_relabels(const Checkpoint& source, const std::vector<std::string>& before,
                      const Checkpoint& result, TensorId made,
                      const std::vector<std::string>& after, const PlannedTensor& planned) {
  std::map<Extents, ChunkId> by_offsets;
  for (ChunkId chunk : result.chunks(made)) {
    if (volume(result.sizes(chunk)) != 0) by_offsets[copy_of(result.offsets(chunk))] = chunk;
  }
  for (const PlannedChunk& chunk : planned.chunks) {
    if (!chunk.item || is_empty(chunk.box)) continue;
    std::string expected = before[index_of(*chunk.item)];
    if (auto place = place_elsewhere(source, chunk)) {
      SHW_TRY(expected, hash_item(source, *place, nullptr));
    }
    auto found = by_offsets.find(chunk.box.offsets);
    if (found != by_offsets.end() && same(result.sizes(found->second), chunk.box.sizes) &&
        expected == after[index_of(found->second)]) {
      continue;
    }
    return fail(
        ErrorKind::kIo,
        "the tile at " + to_text(chunk.box.offsets) + " is not the one that was to stay as it is",
        {source.file(source.item(*chunk.item)->file).path, std::nullopt,
         std::string(source.fqn(planned.tensor))});
  }
  return {};
}

const ObjectRow* find_entry(const Checkpoint& checkpoint, std::string_view fqn) {
  for (const ObjectRow& row : checkpoint.objects()) {
    if (row.fqn == fqn) return &row;
  }
  return nullptr;
}

Result<std::string> hash_entry(const Checkpoint& checkpoint, const ObjectRow* row,
                               std::string_view fqn) {
  if (row == nullptr || !row->item)
    return fail(ErrorKind::kDamaged, "the entry has no item",
                Place{.file = {}, .tensor = std::string(fqn)});
  return hash_item(checkpoint, *row->item, nullptr);
}

Status certify_entries(const Checkpoint& source, const Checkpoint& result, const Plan& plan,
                       const FilledRecord& filled, Certificate& certificate) {
  std::set<std::string_view> done;
  for (const PlannedEntry& entry : plan.entries) {
    const ObjectRow &to = source.objects()[entry.object], &from = source.objects()[entry.item_of];
    SHW_TRY(std::string before, hash_entry(source, &from, from.fqn));
    SHW_TRY(std::string after, hash_entry(result, find_entry(result, to.fqn), to.fqn));
    if (before != after)
      return fail(ErrorKind::kIo, "is not the entry that it was to become",
                  Place{.file = {}, .tensor = to.fqn});
    certificate.entries.push_back({to.fqn, from.fqn, after});
    done.insert(to.fqn);
  }
  for (const FilledEntry& entry : filled.entries) {
    if (done.contains(entry.fqn)) continue;
    SHW_TRY(std::string item, hash_entry(result, find_entry(result, entry.fqn), entry.fqn));
    certificate.entries.push_back({entry.fqn, entry.from, item});
  }
  certificate.lossless = certificate.lossless && filled.entries.empty();
  return {};
}

}  // namespace

std::uint64_t item_bytes(const Checkpoint& checkpoint) {
  std::uint64_t total = 0;
  for (const auto& [key, chunks] : chunks_by_item(checkpoint)) {
    auto length = narrow<std::uint64_t>(std::get<2>(key));
    total = length ? checked_add(total, *length).value_or(UINT64_MAX) : total;
  }
  return total;
}

Result<std::vector<std::string>> hash_all_items(const Checkpoint& checkpoint, Progress* progress) {
  auto by_item = chunks_by_item(checkpoint);
  std::vector<std::pair<Key, const std::vector<std::uint32_t>*>> tasks;
  for (const auto& [key, chunks] : by_item) tasks.emplace_back(key, &chunks);
  std::vector<std::string> hashes(checkpoint.chunk_count());
  SHW_CHECK(each_in_parallel(tasks.size(), [&](std::size_t t) -> Status {
    const auto& [key, chunks] = tasks[t];
    ItemPlace place{FileId{std::get<0>(key)}, std::get<1>(key), std::get<2>(key)};
    auto hash = hash_item(checkpoint, place, progress);
    if (!hash) {
      hash.error().place.tensor = checkpoint.fqn(checkpoint.tensor_of(ChunkId{chunks->front()}));
      return tl::unexpected<Error>(std::move(hash).error());
    }
    for (std::uint32_t chunk : *chunks) hashes[chunk] = *hash;
    return {};
  }));
  return hashes;
}

namespace {

// What is gone of it: by this repair, by one before, or in a hole that nothing mends.
void note_loss(const Checkpoint& source, TensorId tensor, bool planned, const FilledTensor* filled,
               TensorCertificate& entry) {
  if (filled != nullptr) {
    entry.lost = filled->lost;
    entry.lost_boxes = filled->boxes;
    entry.fill = filled->fill;
    entry.fill_from = filled->fill_from;
    entry.fill_checkpoint = filled->fill_checkpoint;
  }
  if (planned) return;
  auto boxes = chunk_boxes(source, tensor);
  if (!check_chunks_are_boxes(source, tensor) || tiles_exactly(boxes, source.shape(tensor))) return;
  std::size_t looks = 20'000'000;
  for (const Box& gap : complement(boxes, source.shape(tensor)).value_or(std::vector<Box>{}))
    add_disjoint(entry.lost_boxes, gap, looks);
  entry.lost = total_volume(entry.lost_boxes).value_or(0);
}

}  // namespace

TensorCertificate certify_tensor(const Checkpoint& result, TensorId tensor,
                                 const std::vector<std::string>& hashes) {
  TensorCertificate entry;
  entry.fqn = result.fqn(tensor);
  for (ChunkId chunk : result.chunks(tensor)) entry.items_after.push_back(hashes[index_of(chunk)]);
  entry.shape = copy_of(result.shape(tensor));
  entry.dtype = name(result.dtype(tensor));
  entry.layout = layout_hash(result, tensor);
  return entry;
}

Result<Certificate> certify(const Checkpoint& source, const std::vector<std::string>& before,
                            const Checkpoint& result, const std::vector<std::string>& after,
                            const Plan& plan) {
  Certificate certificate;
  certificate.source = plan.checkpoint;
  certificate.version = kProgramVersion;
  certificate.operations = plan.operations;
  std::map<TensorId, const PlannedTensor*> planned;
  for (const PlannedTensor& tensor : plan.tensors) planned[tensor.tensor] = &tensor;
  FilledRecord filled = filled_after(source, plan);
  std::map<std::string_view, const FilledTensor*> losses;
  for (const FilledTensor& tensor : filled.tensors) losses[tensor.fqn] = &tensor;
  for (std::uint32_t t = 0; t < source.tensor_count(); ++t) {
    TensorId tensor{t};
    auto found = planned.find(tensor);
    std::string_view fqn =
        found != planned.end() ? fqn_after(source, *found->second) : source.fqn(tensor);
    auto made = result.find(fqn);
    if (!made) {
      return fail(ErrorKind::kIo, "is missing in what was written",
                  Place{.file = {}, .tensor = std::string(fqn)});
    }
    TensorCertificate entry = certify_tensor(result, *made, after);
    if (fqn != source.fqn(tensor)) entry.renamed_from = source.fqn(tensor);
    for (ChunkId chunk : source.chunks(tensor)) {
      if (!before[index_of(chunk)].empty()) entry.items_before.push_back(before[index_of(chunk)]);
    }
    auto loss = losses.find(entry.fqn);
    note_loss(source, tensor, found != planned.end(), loss == losses.end() ? nullptr : loss->second,
              entry);
    if (found != planned.end()) {
      SHW_CHECK(check_relabels(source, before, result, *made, after, *found->second));
    } else {
      auto sorted = [](std::vector<std::string> list) {
        std::sort(list.begin(), list.end());
        return list;
      };
      if (sorted(entry.items_before) != sorted(entry.items_after)) {
        return fail(ErrorKind::kIo, "differs from its source after it was copied",
                    Place{.file = {}, .tensor = entry.fqn});
      }
    }
    entry.kept = volume(result.shape(*made)).value_or(0) - entry.lost;
    certificate.lossless = certificate.lossless && entry.lost == 0;
    certificate.tensors.push_back(std::move(entry));
  }
  SHW_CHECK(certify_entries(source, result, plan, filled, certificate));
  return certificate;
}

std::vector<std::string> wrong_entries(const Certificate& certificate,
                                       const Checkpoint& checkpoint) {
  std::vector<std::string> wrong;
  for (const EntryCertificate& entry : certificate.entries) {
    auto hash = hash_entry(checkpoint, find_entry(checkpoint, entry.fqn), entry.fqn);
    if (!hash || *hash != entry.item)
      wrong.push_back(entry.fqn + ": the entry is not the one that was certified");
  }
  return wrong;
}

namespace {

// Empty where the tensor is as the certificate says; else why not.
std::string contradiction(const TensorCertificate& entry, const Checkpoint& checkpoint,
                          TensorId tensor, const std::vector<std::string>& hashes) {
  auto total = volume(checkpoint.shape(tensor));
  if (!same(entry.shape, checkpoint.shape(tensor))) {
    return "has the shape " + to_text(checkpoint.shape(tensor)) + " where " + to_text(entry.shape) +
           " was certified";
  }
  if (!entry.dtype.empty() && entry.dtype != name(checkpoint.dtype(tensor))) {
    return "has the dtype " + std::string(name(checkpoint.dtype(tensor))) + " where " +
           entry.dtype + " was certified";
  }
  if (!total || checked_add(entry.kept, entry.lost) != total || entry.lost < 0 || entry.kept < 0) {
    return fmt::format("{} kept and {} lost are not the elements of {}", entry.kept, entry.lost,
                       to_text(checkpoint.shape(tensor)));
  }
  if (!check_chunks_are_boxes(checkpoint, tensor)) return "a recorded tile is no box";
  auto boxes = chunk_boxes(checkpoint, tensor);
  if (!tiles_exactly(boxes, checkpoint.shape(tensor)))
    return "its tiles do not cover " + to_text(checkpoint.shape(tensor)) + " exactly once";
  for (const Box& box : entry.lost_boxes) {
    if (!lies_inside(box.offsets, box.sizes, checkpoint.shape(tensor)))
      return "a lost box lies outside the tensor";
  }
  if (total_volume(entry.lost_boxes) != entry.lost || !are_disjoint(entry.lost_boxes))
    return "the lost boxes do not hold the number of elements that is lost";
  if (entry.lost == 0 && !entry.fill.empty()) return "nothing of it is lost, and yet it was filled";
  if (entry.layout != layout_hash(checkpoint, tensor))
    return "its tiles are not where they were certified to be";
  auto chunks = checkpoint.chunks(tensor);
  if (entry.items_after.size() != chunks.size()) {
    return fmt::format("has {} where the certificate names {}", plural(chunks.size(), "tile"),
                       entry.items_after.size());
  }
  for (std::uint32_t i = 0; i < chunks.size(); ++i) {
    if (hashes[index_of(chunks[i])] == entry.items_after[i]) continue;
    auto item = checkpoint.item(chunks[i]);
    return "the tile at " + to_text(checkpoint.offsets(chunks[i])) + " in " +
           (item ? checkpoint.file(item->file).path : std::string("no file")) +
           " is not the one that was certified";
  }
  return {};
}

}  // namespace

VerifyReport hold_against(const Certificate& certificate, const Checkpoint& checkpoint,
                          const std::vector<std::string>& hashes) {
  VerifyReport report;
  std::vector<bool> certified(checkpoint.tensor_count(), false);
  for (const TensorCertificate& entry : certificate.tensors) {
    auto tensor = checkpoint.find(entry.fqn);
    std::string why =
        tensor ? contradiction(entry, checkpoint, *tensor, hashes) : "is certified, but not there";
    if (!why.empty()) report.reasons.push_back(entry.fqn + ": " + why);
    if (tensor) certified[index_of(*tensor)] = true;
    ++report.tensors;
    report.kept += entry.kept;
    report.lost += entry.lost;
  }
  for (std::size_t t = 0; t < certified.size(); ++t) {
    if (certified[t]) continue;
    report.reasons.push_back(std::string(checkpoint.fqn(TensorId{static_cast<std::uint32_t>(t)})) +
                             ": is there, but not certified");
  }
  for (std::string& why : wrong_entries(certificate, checkpoint))
    report.reasons.push_back(std::move(why));
  if (certificate.lossless && report.lost != 0)
    report.reasons.push_back("the certificate claims to lose nothing and lists losses");
  bool changed = !certificate.dropped.empty() || certificate.trimmed != 0 ||
                 std::any_of(certificate.tensors.begin(), certificate.tensors.end(),
                             [](const TensorCertificate& entry) { return entry.is_cast; });
  if (certificate.lossless && changed)
    report.reasons.push_back("the certificate claims to lose nothing and lists what is not kept");
  if (!certificate.lossless && report.lost == 0 && !changed && certificate.entries.empty())
    report.reasons.push_back("the certificate says that something is lost and lists nothing");
  report.outcome =
      report.reasons.empty() ? VerifyReport::Outcome::kProved : VerifyReport::Outcome::kBroken;
  if (report.reasons.empty()) {
    report.reasons.push_back(
        "every tile covers its place exactly once and has the bytes that were "
        "certified");
  }
  return report;
}

}  // namespace shw
