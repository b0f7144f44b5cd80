#include "core/repair/proof/prove_result.h"

#include <functional>
#include <map>

#include "core/base/hash.h"
#include "core/base/parallel.h"
#include "core/base/team.h"
#include "core/formats/item_pass.h"
#include "core/formats/items.h"
#include "core/repair/lower/lower.h"
#include "core/repair/plan/entries.h"
#include "core/repair/proof/certify.h"
#include "core/repair/proof/checksum_mismatches.h"
#include "core/repair/proof/hash_each.h"
#include "core/repair/proof/item_hashes.h"
#include "core/repair/run/carry_out.h"

namespace shw {
namespace {

struct Proving {
  const Checkpoint& source;
  const Plan& plan;
  const WrittenFolder& written;
  const MadeChunks& made;
  Progress* progress;
  const Checkpoint& result = written.result;
};

// A tile that was made. There may be millions of them.
struct MadeChunk {
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;
  std::uint32_t tensor = kNone;  // in Plan::tensors
  std::uint32_t made = kNone;    // in WrittenFolder::made: what was read for it
  bool is_made() const { return tensor != kNone; }
};

bool is_made(const PlannedTensor& tensor, std::size_t chunk) {
  return !tensor.chunks.item(chunk) && !is_empty(tensor.chunks.box(chunk));
}

bool makes_anything(const Plan& plan) {
  for (const PlannedTensor& tensor : plan.tensors) {
    for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
      if (is_made(tensor, i)) return true;
    }
  }
  return false;
}

// By chunk of the result; none where all of them come along.
std::vector<MadeChunk> made_chunks(const Proving& proving) {
  if (!makes_anything(proving.plan)) return {};
  std::vector<MadeChunk> made(proving.result.chunk_count());
  for (std::size_t t = 0; t < proving.plan.tensors.size(); ++t) {
    const PlannedTensor& tensor = proving.plan.tensors[t];
    auto there = proving.result.find(fqn_after(proving.source, tensor));
    std::map<Extents, ChunkId> by_offsets;
    for (ChunkId chunk : proving.result.chunks(*there)) {
      if (volume(proving.result.sizes(chunk)) != 0)
        by_offsets[copy_of(proving.result.offsets(chunk))] = chunk;
    }
    for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
      if (!is_made(tensor, i)) continue;
      MadeChunk& one = made[index_of(by_offsets.at(tensor.chunks.box(i).offsets))];
      one.tensor = static_cast<std::uint32_t>(t);
      if (auto known = proving.made.find(t, i)) one.made = static_cast<std::uint32_t>(*known);
    }
  }
  return made;
}

tl::unexpected<Error> made_wrong(const Proving& proving, const MadeChunk& made) {
  const PlannedTensor& tensor = proving.plan.tensors[made.tensor];
  return fail(ErrorKind::kIo, "a tile differs from its source after it was written",
              Place{.file = {}, .tensor = std::string(fqn_after(proving.source, tensor))});
}

// A tile that was made, read back once and held against what was read for it. The hash of its item.
Result<Hash128> prove_made(const Proving& proving, const MadeChunk& made, ChunkId at,
                           ItemHasher& passes) {
  SHW_TRY(ItemPass pass, passes.hash_and_fingerprint(at, proving.progress));
  const auto read = made.made == MadeChunk::kNone ? std::nullopt : proving.written.made[made.made];
  if (read && read->fingerprint == pass.elements) return pass.hash;
  return made_wrong(proving, made);
}

// The hash of each chunk's item, in the order of chunks; read in that of their items.
Result<ItemHashes> hash_as_they_lie(
    const Proving& proving, const Checkpoint& checkpoint, const char* step,
    const std::function<std::uint64_t(ChunkId)>& cost,
    const std::function<Result<Hash128>(ChunkId, ItemHasher&)>& find) {
  const std::vector<ChunkId> order = chunks_on_disk(checkpoint);
  std::vector<std::uint64_t> costs;
  costs.reserve(order.size());
  for (ChunkId chunk : order) costs.push_back(cost(chunk));
  Pool<ItemHasher> passes([&] { return std::make_unique<ItemHasher>(checkpoint); });
  HashWork work{step, costs, {}, proving.progress};
  work.find = [&](std::size_t i) { return find(order[i], *passes.take()); };
  SHW_TRY(const ItemHashes found, hash_each(proving.written.team, work));
  ItemHashes by_chunk(found.size());
  for (std::size_t i = 0; i < found.size(); ++i) by_chunk[index_of(order[i])] = found[i];
  return by_chunk;
}

// Of all items of the result, those of tiles that were made proved on the way, and the others held
// against the checksums that came along with them.
Result<ItemHashes> prove_items(const Proving& proving, ChecksumMismatches& mismatches) {
  std::vector<MadeChunk> made = made_chunks(proving);
  SHW_TRY(ItemHashes hashes, hash_as_they_lie(
                                 proving, proving.result, "prove",
                                 [&](ChunkId chunk) { return item_length(proving.result, chunk); },
                                 [&](ChunkId chunk, ItemHasher& passes) -> Result<Hash128> {
                                   if (!made.empty() && made[index_of(chunk)].is_made())
                                     return prove_made(proving, made[index_of(chunk)], chunk,
                                                       passes);
                                   if (!proving.result.item(chunk)) return kNoHash;
                                   SHW_TRY(VerifiedItem held, passes.hold(chunk, proving.progress));
                                   mismatches.add(chunk, std::move(held.mismatch));
                                   return held.hash;
                                 }));
  if (proving.written.team != nullptr) SHW_CHECK(mismatches.share(*proving.written.team));
  return hashes;
}

bool was_seen(const Proving& proving, ChunkId chunk) {
  auto item = proving.source.item(chunk);
  auto range = item ? range_in_file(*item, proving.source.file(item->file).size) : std::nullopt;
  return range && proving.written.copied_items.hash_of(item->file, range->offset, range->length);
}

// Items of the source that came along, by chunk; empty for those whose elements were moved.
Result<ItemHashes> hash_kept_items(const Proving& proving) {
  std::vector<bool> kept(proving.source.chunk_count(), true);
  for (const PlannedTensor& tensor : proving.plan.tensors) {
    for (ChunkId chunk : proving.source.chunks(tensor.tensor)) kept[index_of(chunk)] = false;
  }
  for (const PlannedTensor& tensor : proving.plan.tensors) {
    for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
      if (auto item = tensor.chunks.item(i)) kept[index_of(*item)] = true;
    }
  }
  return hash_as_they_lie(
      proving, proving.source, "hash what came along",
      [&](ChunkId chunk) {
        const bool is_read = kept[index_of(chunk)] && !was_seen(proving, chunk);
        return is_read ? item_length(proving.source, chunk) : 0;
      },
      [&](ChunkId chunk, ItemHasher& passes) -> Result<Hash128> {
        auto item = proving.source.item(chunk);
        if (!kept[index_of(chunk)] || !item) return kNoHash;
        return hash_kept(proving.source, *item, proving.written.copied_items, passes,
                         proving.progress);
      });
}

}  // namespace

MadeChunks::MadeChunks(const Plan& plan) {
  std::size_t chunks = 0;
  for (const PlannedTensor& tensor : plan.tensors) {
    first_.push_back(chunks);
    chunks += tensor.chunks.size();
  }
  first_.push_back(chunks);
}

void MadeChunks::add(std::size_t tensor, std::size_t chunk, std::size_t made) {
  if (made_.empty()) made_.resize(first_.back(), kNone);
  made_[first_[tensor] + chunk] = static_cast<std::uint32_t>(made);
}

std::optional<std::size_t> MadeChunks::find(std::size_t tensor, std::size_t chunk) const {
  if (made_.empty()) return std::nullopt;
  const std::uint32_t made = made_[first_[tensor] + chunk];
  return made == kNone ? std::nullopt : std::optional<std::size_t>(made);
}

Result<std::optional<Error>> object_that_differs(const Checkpoint& source, const Plan& plan,
                                                 const Checkpoint& result) {
  std::map<std::string_view, const NonTensorEntry*> rows;
  for (const NonTensorEntry& row : result.objects()) rows[row.fqn] = &row;
  std::map<std::string_view, std::string_view> new_names;
  for (const RenamedObject& object : plan.objects)
    new_names[source.objects()[object.object].fqn] = object.fqn;
  std::vector<std::size_t> items = items_after(source, plan);
  for (std::size_t i = 0; i < items.size(); ++i) {
    const NonTensorEntry& row = source.objects()[i];
    const auto& item = source.objects()[items[i]].item;
    auto renamed = new_names.find(row.fqn);
    auto found = rows.find(renamed == new_names.end() ? row.fqn : renamed->second);
    bool there = found != rows.end() && found->second->item && item;
    if (there) {
      SHW_TRY(std::string before, hash_item(source, *item, nullptr));
      SHW_TRY(std::string after, hash_item(result, *found->second->item, nullptr));
      if (before == after) continue;
    }
    Error differs{ErrorKind::kIo, "an object differs from its source after it was copied"};
    differs.place.tensor = row.fqn;
    return std::optional<Error>(std::move(differs));
  }
  return std::optional<Error>();
}

Result<bool> prove_result(const Checkpoint& source, const Plan& plan, const ProofExtras& extras,
                          const WrittenFolder& written, const MadeChunks& made, RepairResult& told,
                          Progress* progress) {
  Proving proving{source, plan, written, made, progress};
  if (progress != nullptr) progress->begin(Phase::kVerifying, 2 * item_bytes(source), true);
  SHW_CHECK(compare_metadata(source, plan, written.result));
  SHW_TRY(auto before, hash_kept_items(proving));
  ChecksumMismatches mismatches;
  SHW_TRY(auto after, prove_items(proving, mismatches));
  return run_on_rank0_and_broadcast(written.team, [&]() -> Result<bool> {
    SHW_TRY(Certificate certificate,
            certify({plan, source, before, written.result, after, mismatches}, progress));
    certificate.plan = extras.plan;
    SHW_TRY(std::optional<Error> differs, object_that_differs(source, plan, written.result));
    if (differs) return tl::unexpected<Error>(std::move(*differs));
    SHW_CHECK(write_certificate(written, after, extras.integrity, certificate, progress));
    told.of_other_ranks = certificate.of_other_ranks;
    told.damage = damage_in(certificate);
    return certificate.lossless;
  });
}

}  // namespace shw
