#include "core/repair/proof/prove_target.h"

#include <memory>

#include "core/base/hash.h"
#include "core/base/parallel.h"
#include "core/base/team.h"
#include "core/formats/item_pass.h"
#include "core/repair/proof/checksum_mismatches.h"
#include "core/repair/proof/compare_target.h"
#include "core/repair/proof/hash_each.h"
#include "core/repair/proof/item_hashes.h"

namespace shw {

MadePlaces::MadePlaces(const Outputs& outputs, const LaidOut& laid_out) {
  for (const OutputTensor& tensor : outputs.tensors) {
    first_.push_back(made_.size());
    made_.resize(made_.size() + tensor.tiles.size(), kKept);
  }
  for (std::uint32_t i = 0; i < laid_out.made.size(); ++i)
    made_[first_[laid_out.made[i].tensor] + laid_out.made[i].tile] = i;
}

std::uint32_t MadePlaces::tiles_of(std::uint32_t entry) const {
  const std::size_t end = entry + 1 < first_.size() ? first_[entry + 1] : made_.size();
  return static_cast<std::uint32_t>(end - first_[entry]);
}

std::optional<std::uint32_t> MadePlaces::find(std::uint32_t entry, std::uint32_t tile) const {
  const std::uint32_t made = made_[first_[entry] + tile];
  return made == kKept ? std::nullopt : std::optional(made);
}

namespace {

bool is_same_place(const ProvingTarget& proving, const ItemPlace& before, const ItemPlace& now) {
  return before.offset == now.offset && before.length == now.length &&
         proving.all.source().file(before.file).path == proving.result.file(now.file).path;
}

Result<WrittenTensor> written_of(const ProvingTarget& proving, const TargetEntry& entry) {
  return written_tensor(proving.all, entry, proving.form, proving.result);
}

// There may be millions of them.
struct TileTask {
  std::uint32_t entry = 0;
  ChunkId chunk{};                      // of the result
  std::optional<std::uint32_t> made{};  // in WrittenFolder::made
  std::optional<ChunkId> kept{};        // else: what it was in the source
  const ItemPlace* place = nullptr;     // and where that lies, if not where its record says
};

struct PassesOfBoth {
  PassesOfBoth(const Checkpoint& before, const Checkpoint& after) : source(before), result(after) {}
  ItemHasher source, result;
};

// The chunk of the source that begins where the tile does.
std::optional<ChunkId> kept_chunk_of(const IndexedTensor& tensor, const Checkpoint& result,
                                     ChunkId tile) {
  for (const Part* part : tensor.index.near(box_of(result, tile))) {
    const auto* from = std::get_if<FromChunk>(&part->from);
    if (from != nullptr && from->input == 0 && same(part->box.offsets, result.offsets(tile)))
      return from->chunk;
  }
  return std::nullopt;
}

// The item that came along as it was is the one of the source. Its hash.
Result<Hash128> prove_kept(const TileTask& task, const ProvingTarget& proving,
                           PassesOfBoth& passes) {
  const Checkpoint& source = proving.all.source();
  // In place a tile without elements stays as it is too, and is made of nothing.
  if (proving.in_place && is_empty(box_of(proving.result, task.chunk))) {
    if (!proving.result.item(task.chunk)) return kNoHash;
    SHW_TRY(VerifiedItem held, passes.result.hold(task.chunk, proving.progress));
    return held.hash;
  }
  auto before = task.kept ? source.item(*task.kept) : std::nullopt;
  if (task.place != nullptr) before = *task.place;
  auto now = proving.result.item(task.chunk);
  // Where files stay, so do tiles that have no item.
  if (proving.form.keeps_files && !before && !now) return kNoHash;
  if (before && now) {
    SHW_TRY(VerifiedItem held, passes.result.hold(task.chunk, proving.progress));
    Hash128 wanted = held.hash;
    if (!proving.in_place || !is_same_place(proving, *before, *now)) {
      SHW_TRY(wanted,
              hash_kept(source, *before, proving.written.copied_items, passes.source, nullptr));
    }
    if (wanted == held.hash) {
      proving.mismatches.add(task.chunk, std::move(held.mismatch));
      return wanted;
    }
  }
  return differs_from_target(proving.all.tensors[task.entry].fqn,
                             "a tile that was to stay as it is does not");
}

// One tile, read back once: what passes by is held against the fingerprint of what was read for it,
// or against the item that it was. The item's hash.
Result<Hash128> prove_tile(const TileTask& task, const ProvingTarget& proving,
                           PassesOfBoth& passes) {
  if (!task.made) return prove_kept(task, proving, passes);
  SHW_TRY(ItemPass pass, passes.result.hash_and_fingerprint(task.chunk, proving.progress));
  const auto& read = proving.written.made[*task.made];
  if (read && read->fingerprint == pass.elements) return pass.hash;
  return differs_from_target(proving.all.tensors[task.entry].fqn,
                             "its tile at " + to_text(proving.result.offsets(task.chunk)) +
                                 " does not hold what was read for it");
}

// The place is held by the target.
void note_kept(const TargetChunk& tile, TileTask& task) {
  task.kept = tile.kept;
  if (tile.more != nullptr && tile.more->place) task.place = &*tile.more->place;
}

// Every tile of one entry, which is written in the tiles that it was to be.
Result<std::vector<TileTask>> tasks_of(const ProvingTarget& proving, std::uint32_t entry) {
  SHW_TRY(WrittenTensor written, written_of(proving, proving.all.tensors[entry]));
  SHW_TRY(std::vector<std::uint32_t> tile_of,
          match_tiles(written, proving.result, proving.all.tensors[entry].fqn));
  std::vector<TileTask> tasks;
  tasks.reserve(tile_of.size());
  std::unique_ptr<const IndexedTensor> tensor;
  for (ChunkId chunk : proving.result.chunks(written.at)) {
    const std::uint32_t tile = tile_of[tasks.size()];
    tasks.push_back({entry, chunk, proving.places.find(entry, tile)});
    TileTask& task = tasks.back();
    if (task.made) continue;
    if (proving.form.keeps_files) {
      note_kept(written.tensor.tiles[tile], task);
      continue;
    }
    // Its parts say so.
    if (tensor == nullptr)
      tensor = std::make_unique<const IndexedTensor>(std::move(written.tensor));
    task.kept = kept_chunk_of(*tensor, proving.result, chunk);
  }
  return tasks;
}

// The hashes of items of the source that came along, where they are recorded.
Result<ItemHashes> hashes_before(const ProvingTarget& proving, const std::vector<TileTask>& tasks,
                                 const ItemHashes& hashes) {
  const Checkpoint& source = proving.all.source();
  ItemHashes before(source.chunk_count());
  std::vector<ChunkId> unread;
  for (const TileTask& task : tasks) {
    if (!task.kept) continue;
    if (task.place != nullptr)
      unread.push_back(*task.kept);
    else
      before[index_of(*task.kept)] = hashes[index_of(task.chunk)];
  }
  ItemHasher passes(source);
  for (ChunkId chunk : unread) {
    const auto item = source.item(chunk);
    if (!item || before[index_of(chunk)] != kNoHash) continue;
    SHW_TRY(before[index_of(chunk)],
            hash_kept(source, *item, proving.written.copied_items, passes, nullptr));
  }
  return before;
}

}  // namespace

Result<ProvedTiles> prove_tiles(const ProvingTarget& proving) {
  const TargetState& all = proving.all;
  if (proving.result.tensor_count() != all.tensors.size())
    return differs_from_target("", "another number of tensors");
  std::vector<std::vector<TileTask>> of_entries(all.tensors.size());
  SHW_CHECK(parallel_for(of_entries.size(), [&](std::size_t i) -> Status {
    SHW_TRY(of_entries[i], tasks_of(proving, static_cast<std::uint32_t>(i)));
    return {};
  }));
  std::vector<TileTask> tasks;
  tasks.reserve(proving.result.chunk_count());
  for (std::vector<TileTask>& own : of_entries) {
    tasks.insert(tasks.end(), own.begin(), own.end());
    own = {};
  }
  // Tiles of one tensor lie in as many files as there were ranks.
  std::vector<ChunkId> chunks;
  chunks.reserve(tasks.size());
  for (const TileTask& task : tasks) chunks.push_back(task.chunk);
  const std::vector<std::uint32_t> order = order_on_disk(proving.result, chunks);
  std::vector<std::uint64_t> costs;
  costs.reserve(order.size());
  for (std::uint32_t i : order) costs.push_back(item_length(proving.result, chunks[i]));
  HashWork work{"prove", costs, {}, proving.progress};
  Pool<PassesOfBoth> passes(
      [&] { return std::make_unique<PassesOfBoth>(all.source(), proving.result); });
  work.find = [&](std::size_t i) { return prove_tile(tasks[order[i]], proving, *passes.take()); };
  SHW_TRY(const ItemHashes found, hash_each(proving.written.team, work));
  if (proving.written.team != nullptr) SHW_CHECK(proving.mismatches.share(*proving.written.team));
  ProvedTiles proved{ItemHashes(proving.result.chunk_count())};
  for (std::size_t i = 0; i < order.size(); ++i)
    proved.hashes[index_of(chunks[order[i]])] = found[i];
  if (!proving.form.keeps_files) return proved;
  SHW_TRY(proved.before, hashes_before(proving, tasks, proved.hashes));
  return proved;
}

}  // namespace shw
