#include "core/repair/proof/item_hashes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <tuple>

#include "core/base/checked.h"
#include "core/base/encoder.h"
#include "core/base/parallel.h"
#include "core/base/parallel_batches.h"
#include "core/base/team.h"
#include "core/exec/copy_hasher.h"
#include "core/formats/items/item_hash.h"
#include "core/formats/items/items.h"
#include "core/repair/proof/checksum_mismatches.h"
#include "core/repair/proof/hash_each.h"

namespace shw {
namespace {

// Place of a chunk's item. Rows instead of a map, which would take a gigabyte for millions of
// chunks.
struct ItemRow {
  FileId file = FileId::kNone;
  std::uint32_t chunk = 0;
  std::int64_t offset = 0, length = 0;
  bool is_same_item(const ItemRow& other) const {
    return file == other.file && offset == other.offset && length == other.length;
  }
};

bool is_before(const ItemRow& a, const ItemRow& b) {
  return std::tuple(a.file, a.offset, a.length, a.chunk) <
         std::tuple(b.file, b.offset, b.length, b.chunk);
}

// Items in the order in which they are in their files; chunks that share an item are adjacent.
std::vector<ItemRow> items_in_file_order(const Checkpoint& checkpoint) {
  std::vector<ItemRow> rows;
  rows.reserve(checkpoint.chunk_count());
  for (std::uint32_t i = 0; i < checkpoint.chunk_count(); ++i) {
    if (auto item = checkpoint.item(ChunkId{i}))
      rows.push_back({item->file, i, item->offset, item->length});
  }
  std::sort(rows.begin(), rows.end(), is_before);
  return rows;
}

// End of the rows that share the item of row `first`.
std::size_t end_of_item(std::span<const ItemRow> rows, std::size_t first) {
  std::size_t last = first + 1;
  while (last < rows.size() && rows[last].is_same_item(rows[first])) ++last;
  return last;
}

}  // namespace

EntryItems::EntryItems(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {
  for (const NonTensorEntry& row : checkpoint.objects()) {
    if (row.item) places_.try_emplace(row.fqn, *row.item);
  }
}

Result<std::string> EntryItems::hash(std::string_view fqn) const {
  auto found = places_.find(fqn);
  if (found != places_.end()) return hash_item(checkpoint_, found->second, nullptr);
  return fail(ErrorKind::kDamaged, "the entry has no item",
              Place{.file = {}, .tensor = std::string(fqn)});
}

Result<Hash128> hash_of_kept_item(const Checkpoint& source, ItemPlace item,
                                  const CopyHasher& copied_items, ItemCursor& items,
                                  Progress* progress) {
  auto range = range_in_file(item, source.file(item.file).size);
  auto seen = range ? copied_items.hash_of(item.file, range->offset, range->length) : std::nullopt;
  if (!seen) return hash_item(items, item, progress);
  if (progress != nullptr) progress->add(range->length);
  return *seen;
}

std::uint64_t item_bytes(const Checkpoint& checkpoint) {
  const std::vector<ItemRow> rows = items_in_file_order(checkpoint);
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < rows.size(); i = end_of_item(rows, i)) {
    auto length = narrow<std::uint64_t>(rows[i].length);
    total = length ? checked_add(total, *length).value_or(UINT64_MAX) : total;
  }
  return total;
}

std::uint64_t item_length(const Checkpoint& checkpoint, ChunkId chunk) {
  auto item = checkpoint.item(chunk);
  return item ? narrow<std::uint64_t>(item->length).value_or(0) : 0;
}

namespace {

// Items of a checkpoint, each hashed by the thread or rank that takes the task.
class ItemTasks {
 public:
  explicit ItemTasks(const Checkpoint& checkpoint, ChecksumMismatches* mismatches = nullptr)
      : checkpoint_(checkpoint),
        mismatches_(mismatches),
        rows_(items_in_file_order(checkpoint)),
        items_([&checkpoint] { return std::make_unique<ItemCursor>(checkpoint, 0); }) {
    for (std::size_t i = 0; i < rows_.size(); i = end_of_item(rows_, i)) first_.push_back(i);
  }

  std::size_t size() const { return first_.size(); }
  std::vector<std::uint64_t> costs() const {
    std::vector<std::uint64_t> costs;
    costs.reserve(first_.size());
    for (std::size_t row : first_)
      costs.push_back(narrow<std::uint64_t>(rows_[row].length).value_or(0));
    return costs;
  }
  // Chunks whose item the task hashes.
  std::span<const ItemRow> chunks(std::size_t task) const {
    const std::size_t last = task + 1 < first_.size() ? first_[task + 1] : rows_.size();
    return std::span(rows_).subspan(first_[task], last - first_[task]);
  }
  Result<Hash128> hash(std::size_t task, Progress* progress) {
    const ItemRow& row = rows_[first_[task]];
    auto hash = mismatches_ == nullptr
                    ? hash_item(*items_.take(), {row.file, row.offset, row.length}, progress)
                    : verify(task, progress);
    if (!hash)
      hash.error().place.tensor = checkpoint_.fqn(checkpoint_.tensor_of(ChunkId{row.chunk}));
    return hash;
  }

 private:
  Result<Hash128> verify(std::size_t task, Progress* progress) {
    const auto rows = chunks(task);
    SHW_TRY(VerifiedItem item,
            hash_and_verify(*items_.take(), ChunkId{rows.front().chunk}, progress));
    for (const ItemRow& row : rows) mismatches_->add(ChunkId{row.chunk}, item.mismatch);
    return item.hash;
  }

  const Checkpoint& checkpoint_;
  ChecksumMismatches* mismatches_;
  std::vector<ItemRow> rows_;
  std::vector<std::size_t> first_;  // by task: first row in rows_
  Pool<ItemCursor> items_;
};

}  // namespace

Result<ItemHashes> hash_all_items(const Checkpoint& checkpoint, Progress* progress,
                                  const ChunkCallback& then, ChecksumMismatches* mismatches) {
  ItemTasks tasks(checkpoint, mismatches);
  ItemHashes hashes(checkpoint.chunk_count());
  const std::vector<std::uint64_t> costs = tasks.costs();
  SHW_CHECK(parallel_for_batched(costs, [&](std::size_t t) -> Status {
    SHW_TRY(Hash128 hash, tasks.hash(t, progress));
    for (const ItemRow& row : tasks.chunks(t)) {
      hashes[row.chunk] = hash;
      Status done = then ? then(ChunkId{row.chunk}) : Status{};
      if (!done) return done;
    }
    return {};
  }));
  return hashes;
}

Result<ItemHashes> hash_all_items(const Checkpoint& checkpoint, const Checkpoint& of_same_files,
                                  const ItemHashes& known, Progress* progress) {
  std::map<std::string_view, FileId> files;
  for (std::uint32_t i = 0; i < of_same_files.file_count(); ++i)
    files[of_same_files.file(FileId{i}).path] = FileId{i};
  const std::vector<ItemRow> there = items_in_file_order(of_same_files);
  auto known_of = [&](const ItemRow& row) -> const Hash128* {
    if (index_of(row.file) >= checkpoint.file_count()) return nullptr;
    auto file = files.find(checkpoint.file(row.file).path);
    if (file == files.end()) return nullptr;
    const ItemRow wanted{file->second, 0, row.offset, row.length};
    auto found = std::lower_bound(there.begin(), there.end(), wanted, is_before);
    bool is_there = found != there.end() && found->is_same_item(wanted);
    return is_there ? &known[found->chunk] : nullptr;
  };
  ItemTasks tasks(checkpoint);
  ItemHashes hashes(checkpoint.chunk_count());
  SHW_CHECK(parallel_for_batched(tasks.costs(), [&](std::size_t t) -> Status {
    const Hash128* seen = known_of(tasks.chunks(t).front());
    Hash128 hash = seen == nullptr ? kNoHash : *seen;
    if (seen == nullptr) {
      SHW_TRY(hash, tasks.hash(t, progress));
    }
    for (const ItemRow& row : tasks.chunks(t)) hashes[row.chunk] = hash;
    return {};
  }));
  return hashes;
}

Result<Result<ItemHashes>> hash_all_items(const Checkpoint& checkpoint, Progress* progress,
                                          Team& team, const ItemHashExtras& extras) {
  using Hashes = Result<ItemHashes>;
  ItemTasks tasks(checkpoint);
  const std::vector<std::uint64_t> costs = tasks.costs();
  ItemHashes hashes(checkpoint.chunk_count());
  std::optional<Error> first;
  ScatterMapTask work{"hashes", costs, {}, {}, progress};
  work.find = [&](std::size_t t) -> Result<Bytes> {
    auto hash = tasks.hash(t, progress);
    if (!hash && hash.error().kind == ErrorKind::kCancelled)
      return tl::unexpected<Error>(std::move(hash).error());
    Encoder payload;
    add_hash(payload, hash ? *hash : kNoHash);
    if (!hash) payload.add(hash.error());
    for (const ItemRow& row : tasks.chunks(t)) {
      if (!hash || extras.find == nullptr) break;
      SHW_TRY(Bytes of_chunk, extras.find(ChunkId{row.chunk}));
      payload.add(packed_text(of_chunk));
    }
    return payload.take();
  };
  work.receive = [&](std::size_t t, BytesView found) -> Status {
    Decoder payload(found);
    SHW_TRY(Hash128 hash, decode_hash(payload));
    for (const ItemRow& row : tasks.chunks(t)) {
      hashes[row.chunk] = hash;
      if (hash == kNoHash || extras.receive == nullptr) continue;
      SHW_TRY(std::string of_chunk, payload.text());
      SHW_CHECK(extras.receive(ChunkId{row.chunk}, std::as_bytes(std::span(of_chunk))));
    }
    if (hash != kNoHash) return {};
    SHW_TRY(Error error, payload.error());
    if (!first) first = std::move(error);
    return {};
  };
  SHW_CHECK(scatter_map_allgather(team, work));
  return first ? Hashes(tl::unexpected<Error>(std::move(*first))) : Hashes(std::move(hashes));
}

}  // namespace shw
