// Decides which of two tiles that share an item has the wrong record, in this order:
// 1 the header of the shared item fits only one of them;
// 2 the order of items: if every file has its tensors in the order of the metadata (the planner's),
//   one of the two is out of order;
// 3 the ranks: other tensors with as many tiles show which rank writes which tile.
// If none decides, both are named and nothing is repaired.
#include "core/rules/storage/storage_homes.h"

#include <algorithm>
#include <cmath>

#include "core/base/checked.h"
#include "core/facts/storage/orphans.h"
#include "core/formats/items/items.h"

namespace shw {
namespace {

// Limits reads of a file that all ranges seem to share.
constexpr std::size_t kMaxHomes = 256;
// k items are in order by chance with probability 1/k!. Over all files it must be below 1/100: five
// items of one file suffice, 2^6.6 = 100.
constexpr double kBitsForConstraint = 6.6;

// Index of `chunk` among the tensor's chunks ordered by offsets.
std::size_t index_in_offset_order(const Checkpoint& checkpoint, TensorId tensor, ChunkId chunk) {
  std::size_t turn = 0;
  for (ChunkId other : checkpoint.chunks(tensor)) {
    if (std::ranges::lexicographical_compare(checkpoint.offsets(other), checkpoint.offsets(chunk)))
      ++turn;
  }
  return turn;
}

void keep_best_if_unopposed(std::vector<Home>& homes, auto score) {
  std::vector<std::int64_t> scores;
  for (const Home& home : homes) scores.push_back(score(home));
  std::int64_t best = *std::max_element(scores.begin(), scores.end());
  // Keeps the best candidate alone only if all other candidates have no vote; a majority is not
  // enough.
  bool clear = std::all_of(scores.begin(), scores.end(),
                           [&](std::int64_t s) { return s == best || s == 0; });
  if (best == 0 || !clear) return;
  std::size_t i = 0;
  std::erase_if(homes, [&](const Home&) { return scores[i++] != best; });
}

}  // namespace

std::vector<ItemPlace> unclaimed_item_places(const Facts& facts) {
  const Checkpoint& checkpoint = facts.checkpoint;
  std::vector<ItemPlace> homes;
  auto add = [&](std::size_t file, std::uint64_t begin, std::uint64_t size) {
    auto offset = narrow<std::int64_t>(begin), length = narrow<std::int64_t>(size);
    if (offset && length && homes.size() < kMaxHomes)
      homes.push_back({FileId{static_cast<std::uint32_t>(file)}, *offset, *length});
  };
  for (const auto& [file, gaps] : find_orphans(facts)) {
    for (const UnclaimedRange& gap : gaps) add(file, gap.begin, gap.size());
  }
  std::string_view suffix = checkpoint.format().traits.data_suffix;
  for (std::size_t f = 0; !suffix.empty() && f < checkpoint.file_count(); ++f) {
    const FileRow& file = checkpoint.files()[f];
    bool unused = !file.referenced && file.safe && file.kind == EntryKind::kFile &&
                  file.size >= kMinGap && file.path.ends_with(suffix);
    if (unused) add(f, 0, file.size);
  }
  return homes;
}

ItemRelocator::ItemRelocator(const Facts& facts, const std::vector<SharedRange>& shared)
    : facts_(facts), orphans_(unclaimed_item_places(facts)) {
  const Checkpoint& checkpoint = facts.checkpoint;
  contested_.resize(checkpoint.chunk_count());
  for (const SharedRange& range : shared) {
    for (const Claim& claim : range.claims) {
      if (claim.is_chunk()) contested_[index_of(claim.chunk)] = true;
    }
  }
  if (orphans_.empty()) return;
  files_.resize(checkpoint.file_count());
  for (ChunkId chunk : each_of(checkpoint.chunks(), facts)) {
    auto item = checkpoint.item(chunk);
    if (item && !contested_[index_of(chunk)])
      files_[index_of(item->file)].push_back(static_cast<std::uint32_t>(chunk));
  }
  double bits = 0;
  bool in_order = true;
  for (auto& chunks : each_of(files_, facts)) {
    std::sort(chunks.begin(), chunks.end(), [&](std::uint32_t a, std::uint32_t b) {
      return checkpoint.item(ChunkId{a})->offset < checkpoint.item(ChunkId{b})->offset;
    });
    in_order = in_order && std::is_sorted(chunks.begin(), chunks.end());
    bits += std::lgamma(static_cast<double>(chunks.size()) + 1) / std::log(2.0);
  }
  order_is_constraint_ = in_order && bits >= kBitsForConstraint;
}

bool ItemRelocator::fits(const Result<ItemHeader>& header, ChunkId chunk) const {
  const Checkpoint& checkpoint = facts_.checkpoint;
  return header && same(header->sizes, checkpoint.sizes(chunk)) &&
         header->dtype == checkpoint.dtype(checkpoint.tensor_of(chunk));
}

// True if the chunk is in order at this offset: chunk ids and places in a file both follow the
// metadata's order of tensors.
bool ItemRelocator::is_in_order(FileId file, std::int64_t offset, ChunkId chunk) const {
  const auto& chunks = files_[index_of(file)];
  auto next = std::partition_point(chunks.begin(), chunks.end(), [&](std::uint32_t other) {
    return facts_.checkpoint.item(ChunkId{other})->offset < offset;
  });
  bool after = next == chunks.begin() || *(next - 1) < index_of(chunk);
  return after && (next == chunks.end() || index_of(chunk) < *next);
}

bool ItemRelocator::keeps_order(const Home& home) const {
  bool moved = is_in_order(home.home.file, home.home.offset, home.moves);
  if (!home.stays.is_chunk()) return moved;
  ItemPlace shared = place_of(facts_.checkpoint, home.stays);
  bool stayed = is_in_order(shared.file, shared.offset, home.stays.chunk);
  // Compares the two tiles with each other, since neither is among the others.
  bool apart = shared.file != home.home.file ||
               (home.moves < home.stays.chunk) == (home.home.offset < shared.offset);
  return moved && stayed && apart;
}

// Number of other tensors with an equal tile count whose tile of this index is in `file`.
std::int64_t ItemRelocator::votes(ChunkId chunk, FileId file) const {
  const Checkpoint& checkpoint = facts_.checkpoint;
  auto rank = checkpoint.file(file).rank;
  TensorId tensor = checkpoint.tensor_of(chunk);
  std::uint32_t tiles = checkpoint.chunks(tensor).size();
  if (!rank || tiles < 2) return 0;
  std::size_t turn = index_in_offset_order(checkpoint, tensor, chunk);
  std::int64_t votes = 0;
  for (TensorId another : each_tensor(facts_)) {
    auto chunks = checkpoint.chunks(another);
    if (chunks.size() != tiles || another == tensor) continue;
    for (ChunkId other : chunks) {
      if (!contested_[index_of(other)] && checkpoint.writer(other) == rank &&
          index_in_offset_order(checkpoint, another, other) == turn)
        ++votes;
    }
  }
  return votes;
}

std::vector<Home> ItemRelocator::possible_item_places(const SharedRange& range) const {
  std::vector<Home> homes;
  if (range.partial || range.claims.size() != 2) return homes;
  const Claim &first = range.claims[0], &second = range.claims[1];
  auto may_stay = [&](const Claim& claim, const Claim& other) {
    if (claim.is_chunk()) return fits(facts_.headers[index_of(claim.chunk)], claim.chunk);
    return !fits(facts_.headers[index_of(other.chunk)], other.chunk);
  };
  auto offer = [&](const Claim& moves, const Claim& stays) {
    if (!moves.is_chunk() || !may_stay(stays, moves)) return;
    for (const ItemPlace& orphan : orphans_) {
      if (fits(read_orphan_header(facts_.checkpoint, moves.chunk, orphan), moves.chunk))
        homes.push_back({moves.chunk, stays, orphan});
    }
  };
  offer(first, second);
  offer(second, first);
  if (homes.size() > 1 && order_is_constraint_)
    keep_best_if_unopposed(homes,
                           [&](const Home& home) { return std::int64_t{keeps_order(home)}; });
  if (homes.size() > 1) {
    keep_best_if_unopposed(homes, [&](const Home& home) {
      std::int64_t stays =
          home.stays.is_chunk() ? votes(home.stays.chunk, range.place.file) : std::int64_t{0};
      return votes(home.moves, home.home.file) + stays;
    });
  }
  return homes;
}

}  // namespace shw
