#include "core/repair/proof/prove_target.h"

#include <map>
#include <memory>
#include <mutex>
#include <string_view>

#include "core/base/hash.h"
#include "core/base/parallel.h"
#include "core/base/team.h"
#include "core/formats/items/disk_order.h"
#include "core/formats/items/item_hash.h"
#include "core/repair/proof/checksum_mismatches.h"
#include "core/repair/proof/compare_target.h"
#include "core/repair/proof/hash_each.h"
#include "core/repair/proof/item_hashes.h"

namespace shw {

ResultPlaces::ResultPlaces(const Outputs& outputs, const LaidOut& laid_out) {
  for (const OutputTensor& tensor : outputs.tensors) {
    first_.push_back(made_.size());
    made_.resize(made_.size() + tensor.tiles.size(), kKept);
  }
  for (std::uint32_t i = 0; i < laid_out.made.size(); ++i)
    made_[first_[laid_out.made[i].tensor] + laid_out.made[i].tile] = i;
}

std::uint32_t ResultPlaces::tiles_of(std::uint32_t entry) const {
  const std::size_t end = entry + 1 < first_.size() ? first_[entry + 1] : made_.size();
  return static_cast<std::uint32_t>(end - first_[entry]);
}

std::optional<std::uint32_t> ResultPlaces::find(std::uint32_t entry, std::uint32_t tile) const {
  const std::uint32_t made = made_[first_[entry] + tile];
  return made == kKept ? std::nullopt : std::optional(made);
}

namespace {

bool is_same_place(const ProvingTarget& proving, const ItemPlace& before, const ItemPlace& now) {
  return before.offset == now.offset && before.length == now.length &&
         proving.all.source().file(before.file).path == proving.result.file(now.file).path;
}

Result<WrittenTensor> written_tensor_of(const ProvingTarget& proving, const TargetEntry& entry) {
  return written_tensor(proving.all, entry, proving.form, proving.result);
}

// Expected content of a chunk of the result. There may be millions of these.
struct TileTask {
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;
  std::uint32_t entry = kNone;
  std::uint32_t made = kNone;  // in WrittenFolder::made
  std::uint32_t kept = kNone;  // otherwise the chunk of the source
};

struct TileTasks {
  std::vector<TileTask> of_chunk;  // of the result
  // Places of items that are not where their records say; owned by the target.
  std::map<ChunkId, const ItemPlace*> elsewhere = {};
  std::mutex guard = {};

  const ItemPlace* place_of(ChunkId chunk) const {
    const auto found = elsewhere.find(chunk);
    return found == elsewhere.end() ? nullptr : found->second;
  }
};

struct SourceAndResultCursors {
  SourceAndResultCursors(const Checkpoint& before, const Checkpoint& after)
      : source(before, /*decoded_bytes=*/0), result(after, /*decoded_bytes=*/0) {}
  ItemCursor source, result;
};

// The source chunk that the tile keeps: the one at the tile's offsets.
std::optional<ChunkId> find_kept_source_chunk(const IndexedTensor& tensor, const Checkpoint& result,
                                              ChunkId tile) {
  for (const Part* part : tensor.index.near(box_of(result, tile))) {
    const auto* from = std::get_if<FromChunk>(&part->from);
    if (from != nullptr && from->input == 0 && same(part->box.offsets, result.offsets(tile)))
      return from->chunk;
  }
  return std::nullopt;
}

std::string_view name_of(const ProvingTarget& proving, const TileTask& task) {
  return proving.all.tensors[task.entry].fqn;
}

// Place of the source item that the chunk keeps.
std::optional<ItemPlace> source_item_kept_by(const ProvingTarget& proving, const TileTasks& tasks,
                                             ChunkId chunk) {
  if (const ItemPlace* place = tasks.place_of(chunk)) return *place;
  const std::uint32_t kept = tasks.of_chunk[index_of(chunk)].kept;
  return kept == TileTask::kNone ? std::nullopt : proving.all.source().item(ChunkId{kept});
}

// Proves that a kept item is unchanged, and returns its hash.
Result<Hash128> prove_kept_item(const ProvingTarget& proving, const TileTasks& tasks, ChunkId chunk,
                                SourceAndResultCursors& items) {
  // In place, a tile without elements also stays as it is and is made of nothing.
  if (proving.in_place && is_empty(box_of(proving.result, chunk))) {
    if (!proving.result.item(chunk)) return kNoHash;
    SHW_TRY(VerifiedItem written, hash_and_verify(items.result, chunk, proving.progress));
    return written.hash;
  }
  const auto before = source_item_kept_by(proving, tasks, chunk);
  const auto now = proving.result.item(chunk);
  // If files are kept, tiles without an item stay without one.
  if (proving.form.keeps_files && !before && !now) return kNoHash;
  if (before && now) {
    SHW_TRY(VerifiedItem written, hash_and_verify(items.result, chunk, proving.progress));
    Hash128 wanted = written.hash;
    if (!proving.in_place || !is_same_place(proving, *before, *now)) {
      SHW_TRY(wanted, hash_of_kept_item(proving.all.source(), *before, proving.written.copied_items,
                                        items.source, nullptr));
    }
    if (wanted == written.hash) {
      proving.mismatches.add(chunk, std::move(written.mismatch));
      return wanted;
    }
  }
  return differs_from_target(name_of(proving, tasks.of_chunk[index_of(chunk)]),
                             "a chunk that should stay unchanged differs");
}

// Reads one tile back, compares it with its fingerprint or its source item, and returns the item's
// hash.
Result<Hash128> prove_tile(const ProvingTarget& proving, const TileTasks& tasks, ChunkId chunk,
                           SourceAndResultCursors& items) {
  const TileTask& task = tasks.of_chunk[index_of(chunk)];
  if (task.made == TileTask::kNone) return prove_kept_item(proving, tasks, chunk, items);
  SHW_TRY(HashedElements found, hash_and_fingerprint(items.result, chunk, proving.progress));
  const auto& read = proving.written.made[task.made];
  if (read && read->fingerprint == found.elements) return found.hash;
  return differs_from_target(name_of(proving, task),
                             "its chunk at " + to_text(proving.result.offsets(chunk)) +
                                 " does not hold the bytes that were read for it");
}

void record_kept_source(const TargetChunk& tile, ChunkId chunk, TileTasks& tasks) {
  if (tile.kept)
    tasks.of_chunk[index_of(chunk)].kept = static_cast<std::uint32_t>(index_of(*tile.kept));
  if (tile.more == nullptr || !tile.more->place) return;
  std::lock_guard lock(tasks.guard);
  tasks.elsewhere[chunk] = &*tile.more->place;
}

// Adds every tile of one entry; its written tiles must be those of the target.
Status add_tasks(const ProvingTarget& proving, std::uint32_t entry, TileTasks& tasks) {
  SHW_TRY(WrittenTensor written, written_tensor_of(proving, proving.all.tensors[entry]));
  SHW_TRY(std::vector<std::uint32_t> tile_of,
          match_tiles(written, proving.result, proving.all.tensors[entry].fqn));
  std::unique_ptr<const IndexedTensor> tensor;
  std::size_t next = 0;
  for (ChunkId chunk : proving.result.chunks(written.at)) {
    const std::uint32_t tile = tile_of[next++];
    TileTask& task = tasks.of_chunk[index_of(chunk)];
    task.entry = entry;
    if (const auto made = proving.places.find(entry, tile)) {
      task.made = *made;
      continue;
    }
    if (proving.form.keeps_files) {
      record_kept_source(written.tensor.tiles[tile], chunk, tasks);
      continue;
    }
    // The target's parts tell which source chunk a kept tile is.
    if (tensor == nullptr)
      tensor = std::make_unique<const IndexedTensor>(std::move(written.tensor));
    if (const auto kept = find_kept_source_chunk(*tensor, proving.result, chunk))
      task.kept = static_cast<std::uint32_t>(index_of(*kept));
  }
  return {};
}

// Hashes of the source items that were kept, if they are recorded.
Result<ItemHashes> source_hashes_of_kept(const ProvingTarget& proving, const TileTasks& tasks,
                                         const ItemHashes& hashes) {
  const Checkpoint& source = proving.all.source();
  ItemHashes before(source.chunk_count());
  for (std::uint32_t i = 0; i < hashes.size(); ++i) {
    const std::uint32_t kept = tasks.of_chunk[i].kept;
    if (kept != TileTask::kNone && tasks.place_of(ChunkId{i}) == nullptr) before[kept] = hashes[i];
  }
  ItemCursor items(source, /*decoded_bytes=*/0);
  for (const auto& [chunk, place] : tasks.elsewhere) {
    const ChunkId kept{tasks.of_chunk[index_of(chunk)].kept};
    const auto item = source.item(kept);
    if (!item || before[index_of(kept)] != kNoHash) continue;
    SHW_TRY(before[index_of(kept)],
            hash_of_kept_item(source, *item, proving.written.copied_items, items, nullptr));
  }
  return before;
}

}  // namespace

Result<ProvedTiles> prove_tiles(const ProvingTarget& proving) {
  const TargetState& all = proving.all;
  if (proving.result.tensor_count() != all.tensors.size())
    return differs_from_target("", "another number of tensors");
  TileTasks tasks{std::vector<TileTask>(proving.result.chunk_count())};
  SHW_CHECK(parallel_for(all.tensors.size(), [&](std::size_t i) {
    return add_tasks(proving, static_cast<std::uint32_t>(i), tasks);
  }));
  for (const TileTask& task : tasks.of_chunk) {
    if (task.entry == TileTask::kNone) return differs_from_target("", "other tensors");
  }
  // Reads in the order of the files: tiles of one tensor are in as many files as there were ranks.
  const std::vector<ChunkId> order = chunks_on_disk(proving.result);
  std::vector<std::uint64_t> costs;
  costs.reserve(order.size());
  for (ChunkId chunk : order) costs.push_back(item_length(proving.result, chunk));
  HashWork work{"prove", costs, {}, proving.progress};
  Pool<SourceAndResultCursors> items(
      [&] { return std::make_unique<SourceAndResultCursors>(all.source(), proving.result); });
  work.find = [&](std::size_t i) { return prove_tile(proving, tasks, order[i], *items.take()); };
  SHW_TRY(const ItemHashes found, hash_across_ranks(proving.written.team, work));
  if (proving.written.team != nullptr) SHW_CHECK(proving.mismatches.share(*proving.written.team));
  ProvedTiles proved{ItemHashes(order.size())};
  for (std::size_t i = 0; i < order.size(); ++i) proved.hashes[index_of(order[i])] = found[i];
  if (!proving.form.keeps_files) return proved;
  SHW_TRY(proved.before, source_hashes_of_kept(proving, tasks, proved.hashes));
  return proved;
}

}  // namespace shw
