#include "core/repair/proof.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "core/base/checked.h"
#include "core/base/hash.h"
#include "core/base/packed.h"
#include "core/base/parallel.h"
#include "core/base/team.h"
#include "core/base/words.h"
#include "core/formats/items.h"
#include "core/repair/digests.h"
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

Status certify_entries(const Checkpoint& source, const Checkpoint& result, const Plan& plan,
                       const FilledRecord& filled, Certificate& certificate) {
  std::set<std::string_view> done;
  for (const PlannedEntry& entry : plan.entries) {
    const ObjectRow &to = source.objects()[entry.object], &from = source.objects()[entry.item_of];
    SHW_TRY(std::string before, hash_entry(source, from.fqn));
    SHW_TRY(std::string after, hash_entry(result, to.fqn));
    if (before != after)
      return fail(ErrorKind::kIo, "is not the entry that it was to become",
                  Place{.file = {}, .tensor = to.fqn});
    certificate.entries.push_back({to.fqn, from.fqn, after});
    done.insert(to.fqn);
  }
  for (const FilledEntry& entry : filled.entries) {
    if (done.contains(entry.fqn)) continue;
    SHW_TRY(std::string item, hash_entry(result, entry.fqn));
    certificate.entries.push_back({entry.fqn, entry.from, item});
  }
  certificate.lossless = certificate.lossless && filled.entries.empty();
  return {};
}

}  // namespace

std::vector<Box> chunk_boxes(const Checkpoint& checkpoint, TensorId tensor) {
  std::vector<Box> boxes;
  for (ChunkId chunk : checkpoint.chunks(tensor)) boxes.push_back(box_of(checkpoint, chunk));
  return boxes;
}

Result<std::string> hash_entry(const Checkpoint& checkpoint, std::string_view fqn) {
  for (const ObjectRow& row : checkpoint.objects()) {
    if (row.fqn == fqn && row.item) return hash_item(checkpoint, *row.item, nullptr);
  }
  return fail(ErrorKind::kDamaged, "the entry has no item",
              Place{.file = {}, .tensor = std::string(fqn)});
}

std::uint64_t item_bytes(const Checkpoint& checkpoint) {
  std::uint64_t total = 0;
  for (const auto& [key, chunks] : chunks_by_item(checkpoint)) {
    auto length = narrow<std::uint64_t>(std::get<2>(key));
    total = length ? checked_add(total, *length).value_or(UINT64_MAX) : total;
  }
  return total;
}

std::vector<std::uint64_t> item_lengths(const Checkpoint& checkpoint) {
  std::vector<std::uint64_t> lengths(checkpoint.chunk_count());
  for (std::uint32_t i = 0; i < lengths.size(); ++i) {
    if (auto item = checkpoint.item(ChunkId{i}))
      lengths[i] = narrow<std::uint64_t>(item->length).value_or(0);
  }
  return lengths;
}

Result<bool> by_first(Team* team, const std::function<Result<bool>()>& work) {
  SHW_TRY(Bytes told, by_first(team, "certify", [&]() -> Result<Bytes> {
            SHW_TRY(bool is_good, work());
            return Bytes(1, std::byte{is_good});
          }));
  return told == Bytes(1, std::byte{1});
}

namespace {

// An item and the chunks that lie in it.
using ItemTask = std::pair<Key, const std::vector<std::uint32_t>*>;

Result<std::string> hash_of_task(const Checkpoint& checkpoint, const ItemTask& task,
                                 Progress* progress) {
  const auto& [key, chunks] = task;
  ItemPlace place{FileId{std::get<0>(key)}, std::get<1>(key), std::get<2>(key)};
  auto hash = hash_item(checkpoint, place, progress);
  if (!hash)
    hash.error().place.tensor = checkpoint.fqn(checkpoint.tensor_of(ChunkId{chunks->front()}));
  return hash;
}

}  // namespace

Result<std::vector<std::string>> hash_all_items(const Checkpoint& checkpoint, Progress* progress,
                                                const ThenOf& then) {
  auto by_item = chunks_by_item(checkpoint);
  std::vector<ItemTask> tasks;
  for (const auto& [key, chunks] : by_item) tasks.emplace_back(key, &chunks);
  std::vector<std::string> hashes(checkpoint.chunk_count());
  SHW_CHECK(each_in_parallel(tasks.size(), [&](std::size_t t) -> Status {
    SHW_TRY(std::string hash, hash_of_task(checkpoint, tasks[t], progress));
    for (std::uint32_t chunk : *tasks[t].second) {
      hashes[chunk] = hash;
      Status done = then ? then(ChunkId{chunk}) : Status{};
      if (!done) return done;
    }
    return {};
  }));
  return hashes;
}

Result<Result<std::vector<std::string>>> hash_all_items(const Checkpoint& checkpoint,
                                                        Progress* progress, Team& team,
                                                        const BesideHash& beside) {
  using Hashes = Result<std::vector<std::string>>;
  auto by_item = chunks_by_item(checkpoint);
  std::vector<ItemTask> tasks;
  std::vector<std::uint64_t> costs;
  for (const auto& [key, chunks] : by_item) {
    tasks.emplace_back(key, &chunks);
    costs.push_back(narrow<std::uint64_t>(std::get<2>(key)).value_or(0));
  }
  std::vector<std::string> hashes(checkpoint.chunk_count());
  std::optional<Error> first;
  TeamWork work{"hashes", costs, {}, {}, progress};
  work.find = [&](std::size_t t) -> Result<Bytes> {
    auto hash = hash_of_task(checkpoint, tasks[t], progress);
    if (!hash && hash.error().kind == ErrorKind::kCancelled)
      return tl::unexpected<Error>(std::move(hash).error());
    Packer words;
    words.add(std::string_view(hash ? *hash : std::string()));
    if (!hash) words.add(hash.error());
    for (std::uint32_t chunk : *tasks[t].second) {
      if (!hash || beside.find == nullptr) break;
      SHW_TRY(Bytes of_chunk, beside.find(ChunkId{chunk}));
      words.add(packed_text(of_chunk));
    }
    return words.take();
  };
  work.hear = [&](std::size_t t, BytesView found) -> Status {
    Unpacker words(found);
    SHW_TRY(std::string hash, words.text());
    for (std::uint32_t chunk : *tasks[t].second) {
      hashes[chunk] = hash;
      if (hash.empty() || beside.hear == nullptr) continue;
      SHW_TRY(std::string of_chunk, words.text());
      SHW_CHECK(beside.hear(ChunkId{chunk}, std::as_bytes(std::span(of_chunk))));
    }
    if (!hash.empty()) return {};
    SHW_TRY(Error error, words.error());
    if (!first) first = std::move(error);
    return {};
  };
  SHW_CHECK(each_in_team(team, work));
  return first ? Hashes(tl::unexpected<Error>(std::move(*first))) : Hashes(std::move(hashes));
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
  entry.items = static_cast<std::int64_t>(result.chunks(tensor).size());
  entry.after = digest_of_items(hashes_of(result, tensor, hashes));
  entry.tiles = digest_of_tiles(result, tensor, hashes);
  entry.shape = copy_of(result.shape(tensor));
  entry.dtype = name(result.dtype(tensor));
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
    std::vector<std::string> came = hashes_of(source, tensor, before);
    std::erase(came, std::string());
    if (!came.empty()) entry.before = digest_of_items(std::move(came));
    auto loss = losses.find(entry.fqn);
    note_loss(source, tensor, found != planned.end(), loss == losses.end() ? nullptr : loss->second,
              entry);
    if (found != planned.end()) {
      entry.padding = padding_left_out(source, *found->second);
      SHW_CHECK(check_relabels(source, before, result, *made, after, *found->second));
    } else if (digest_of_items(hashes_of(source, tensor, before)) != entry.after ||
               digest_of_tiles(source, tensor, before) != entry.tiles) {
      return fail(ErrorKind::kIo, "differs from its source after it was copied",
                  Place{.file = {}, .tensor = entry.fqn});
    }
    entry.kept = volume(result.shape(*made)).value_or(0) - entry.lost;
    certificate.lossless = certificate.lossless && entry.lost == 0;
    certificate.tensors.push_back(std::move(entry));
  }
  SHW_CHECK(certify_entries(source, result, plan, filled, certificate));
  return certificate;
}

}  // namespace shw
