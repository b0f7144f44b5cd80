#include "views/file_shares.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>

#include "views/text.h"

namespace shw {
namespace {

// Runs of consecutive ranks: "3", "8 to 15".
std::vector<std::string> rank_runs(const std::vector<std::uint32_t>& ranks) {
  std::vector<std::string> runs;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    runs.push_back(end - i < 3 ? fmt::format("{}", ranks[i])
                               : fmt::format("{} to {}", ranks[i], ranks[end - 1]));
    i = end - i < 3 ? i + 1 : end;
  }
  return runs;
}

// True if the ranks are whole groups of `size` ranks that start at a multiple of it.
bool are_whole_nodes(const std::vector<std::uint32_t>& ranks, std::uint32_t size) {
  if (ranks.empty() || ranks.size() % size != 0) return false;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const std::uint32_t first = ranks[i - i % size];
    if (first % size != 0 || ranks[i] != first + i % size) return false;
  }
  return true;
}

}  // namespace

std::string damaged_ranks_text(const std::vector<std::uint32_t>& damaged, std::uint32_t all) {
  if (damaged.empty()) return {};
  std::string text = fmt::format("{} {} of {} lost tiles", damaged.size() == 1 ? "Rank" : "Ranks",
                                 some_of(rank_runs(damaged), 6), human_count(all));
  if (damaged.size() >= all) return text + ".";
  // Tries usual numbers of ranks per host, because checkpoints do not record hosts.
  for (std::uint32_t size : {16u, 8u, 4u}) {
    if (all % size != 0 || all == size || !are_whole_nodes(damaged, size)) continue;
    std::vector<std::string> nodes;
    for (std::size_t i = 0; i < damaged.size(); i += size)
      nodes.push_back(fmt::format("{}", damaged[i] / size));
    return text + fmt::format(": {} {}, if a node has {} ranks.",
                              nodes.size() == 1 ? "node" : "nodes", some_of(nodes, 6), size);
  }
  return text + ".";
}

FileShares make_file_shares(const Snapshot& snapshot, const std::vector<std::uint8_t>& marks) {
  FileShares shares;
  if (snapshot.checkpoint == nullptr) return shares;
  const Checkpoint& checkpoint = *snapshot.checkpoint;
  const bool has_files = checkpoint.directory() != nullptr;
  std::vector<FileShare> all(checkpoint.file_count());
  std::set<std::uint32_t> ranks;
  for (std::uint32_t f = 0; f < checkpoint.file_count(); ++f) {
    const FileRow& row = checkpoint.file(FileId{f});
    all[f].path = row.path;
    all[f].rank = row.rank;
    all[f].bytes = row.size;
    all[f].mark = f < marks.size() ? marks[f] : std::uint8_t{0};
    all[f].is_missing = has_files && row.referenced && row.kind != EntryKind::kFile;
  }
  for (ChunkId chunk : checkpoint.chunks()) {
    auto item = checkpoint.item(chunk);
    if (!item || item->file == FileId::kNone) continue;
    FileShare& share = all[index_of(item->file)];
    ++share.tiles;
    if (!has_files || is_reachable(checkpoint, *item)) continue;
    ++share.unreadable_tiles;
    if (auto writer = checkpoint.writer(chunk)) ranks.insert(*writer);
  }
  std::stable_sort(all.begin(), all.end(), [](const FileShare& a, const FileShare& b) {
    const auto worse = [](const FileShare& share) {
      return std::pair(share.mark > 1 ? share.mark : std::uint8_t{0}, share.unreadable_tiles);
    };
    if (worse(a) != worse(b)) return worse(a) > worse(b);
    return a.bytes > b.bytes;
  });
  for (std::size_t f = kMostFileShares; f < all.size(); ++f) {
    ++shares.more;
    shares.more_damaged += all[f].mark > 1 ? 1 : 0;
  }
  if (all.size() > kMostFileShares) all.resize(kMostFileShares);
  for (const FileShare& share : all) shares.most_bytes = std::max(shares.most_bytes, share.bytes);
  shares.files = std::move(all);
  shares.damaged_ranks = damaged_ranks_text({ranks.begin(), ranks.end()}, checkpoint.rank_count());
  return shares;
}

}  // namespace shw
