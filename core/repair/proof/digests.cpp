#include "core/repair/proof/digests.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/base/hash.h"

namespace shw {
namespace {

void add_hash(RunningHash& digest, const Hash128& hash) {
  if (hash == kNoHash) return;
  const std::string text = to_hex(hash);
  digest.add(std::as_bytes(std::span(text)));
}

// Orders hashes like their hex texts.
bool is_hash_less(const Hash128& a, const Hash128& b) {
  return std::pair(a.high, a.low) < std::pair(b.high, b.low);
}

void add_extents(RunningHash& digest, ExtentsView extents) {
  auto count = static_cast<std::int64_t>(extents.size());
  digest.add(std::as_bytes(std::span(&count, 1)));
  digest.add(std::as_bytes(extents));
}

}  // namespace

std::string digest_of_items(ItemHashes hashes) {
  std::sort(hashes.begin(), hashes.end(), is_hash_less);
  RunningHash digest;
  for (const Hash128& hash : hashes) add_hash(digest, hash);
  return digest.text();
}

ItemHashes hashes_of(const Checkpoint& checkpoint, TensorId tensor, const ItemHashes& hashes) {
  ItemHashes own;
  own.reserve(checkpoint.chunks(tensor).size());
  for (ChunkId chunk : checkpoint.chunks(tensor)) own.push_back(hashes[index_of(chunk)]);
  return own;
}

std::string digest_of_tiles(const Checkpoint& checkpoint, TensorId tensor,
                            const ItemHashes& hashes) {
  std::vector<ChunkId> chunks;
  for (ChunkId chunk : checkpoint.chunks(tensor)) chunks.push_back(chunk);
  auto is_before = [&](ChunkId a, ChunkId b) {
    ExtentsView at_a = checkpoint.offsets(a), at_b = checkpoint.offsets(b);
    ExtentsView size_a = checkpoint.sizes(a), size_b = checkpoint.sizes(b);
    if (!same(at_a, at_b))
      return std::lexicographical_compare(at_a.begin(), at_a.end(), at_b.begin(), at_b.end());
    if (!same(size_a, size_b))
      return std::lexicographical_compare(size_a.begin(), size_a.end(), size_b.begin(),
                                          size_b.end());
    return is_hash_less(hashes[index_of(a)], hashes[index_of(b)]);
  };
  if (!std::is_sorted(chunks.begin(), chunks.end(), is_before))
    std::sort(chunks.begin(), chunks.end(), is_before);
  RunningHash digest;
  add_extents(digest, checkpoint.shape(tensor));
  for (ChunkId chunk : chunks) {
    add_extents(digest, checkpoint.offsets(chunk));
    add_extents(digest, checkpoint.sizes(chunk));
    add_hash(digest, hashes[index_of(chunk)]);
  }
  return digest.text();
}

std::vector<std::string> digests_of_files(const Checkpoint& checkpoint, const ItemHashes& hashes) {
  // Chunks that share an item count once.
  using Item = std::tuple<std::uint32_t, std::int64_t, std::int64_t, std::uint32_t>;
  std::vector<Item> items;
  for (std::uint32_t i = 0; i < checkpoint.chunk_count(); ++i) {
    if (auto item = checkpoint.item(ChunkId{i}))
      items.emplace_back(static_cast<std::uint32_t>(index_of(item->file)), item->offset,
                         item->length, i);
  }
  std::sort(items.begin(), items.end());
  std::vector<std::string> digests(checkpoint.files().size());
  for (std::size_t i = 0; i < items.size();) {
    std::uint32_t file = std::get<0>(items[i]);
    RunningHash digest;
    for (std::size_t first = i; i < items.size() && std::get<0>(items[i]) == file; ++i) {
      auto place = [&](std::size_t at) {
        return std::pair(std::get<1>(items[at]), std::get<2>(items[at]));
      };
      if (i == first || place(i) != place(i - 1)) add_hash(digest, hashes[std::get<3>(items[i])]);
    }
    digests[file] = digest.text();
  }
  return digests;
}

}  // namespace shw
