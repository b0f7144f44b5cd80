#include "views/panels/file_shares.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>

#include "core/base/words.h"
#include "core/mesh/nodes.h"
#include "views/text.h"

namespace shw {

std::string damaged_ranks_text(std::span<const RankShare> ranks, std::uint32_t ranks_per_node) {
  std::vector<std::uint32_t> damaged;
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank].unreadable_tiles != 0) damaged.push_back(rank);
  }
  const auto all = static_cast<std::uint32_t>(ranks.size());
  if (damaged.empty()) return {};
  std::string text = fmt::format("{} {} of {} lost tiles", damaged.size() == 1 ? "Rank" : "Ranks",
                                 short_list_text(rank_runs(damaged), 6), human_count(all));
  const std::string nodes = nodes_text(damaged, all, ranks_per_node);
  return text + (nodes.empty() ? "." : ": " + nodes + ".");
}

namespace {

// Computed tensors are in no file: they become one row.
void merge_computed_rows(const Checkpoint& checkpoint, std::vector<FileShare>& files) {
  if (checkpoint.directory() == nullptr) return;
  FileShare sum;
  std::size_t count = 0;
  std::erase_if(files, [&](const FileShare& file) {
    if (!checkpoint.directory()->is_made(file.path)) return false;
    ++count;
    sum.bytes += file.bytes;
    sum.tiles += file.tiles;
    sum.unreadable_tiles += file.unreadable_tiles;
    sum.mark = std::max(sum.mark, file.mark);
    return true;
  });
  if (count == 0) return;
  sum.path = plural(count, "computed tensor");
  files.push_back(std::move(sum));
}

}  // namespace

FileShares make_file_overview(const Snapshot& snapshot, const std::vector<std::uint8_t>& marks) {
  FileShares shares;
  if (snapshot.checkpoint == nullptr) return shares;
  const Checkpoint& checkpoint = *snapshot.checkpoint;
  const bool has_files = checkpoint.directory() != nullptr;
  std::vector<FileShare> all(checkpoint.file_count());
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
    if (has_files && !is_reachable(checkpoint, *item)) ++share.unreadable_tiles;
  }
  merge_computed_rows(checkpoint, all);
  std::stable_sort(all.begin(), all.end(), [](const FileShare& a, const FileShare& b) {
    const auto worse = [](const FileShare& share) {
      return std::pair(share.mark > 1 ? share.mark : std::uint8_t{0}, share.unreadable_tiles);
    };
    if (worse(a) != worse(b)) return worse(a) > worse(b);
    return a.bytes > b.bytes;
  });
  for (std::size_t f = kMaxFileShares; f < all.size(); ++f) {
    ++shares.more;
    shares.more_damaged += all[f].mark > 1 ? 1 : 0;
  }
  if (all.size() > kMaxFileShares) all.resize(kMaxFileShares);
  for (const FileShare& share : all) shares.most_bytes = std::max(shares.most_bytes, share.bytes);
  shares.files = std::move(all);
  return shares;
}

std::vector<FileShare> node_shares(std::span<const RankShare> ranks, std::uint32_t ranks_per_node) {
  std::vector<FileShare> nodes;
  const auto all = static_cast<std::uint32_t>(ranks.size());
  if (ranks_per_node == 0 || all <= ranks_per_node) return nodes;
  for (std::uint32_t first = 0; first < all; first += ranks_per_node) {
    const std::uint32_t last = std::min(all, first + ranks_per_node) - 1;
    FileShare& node = nodes.emplace_back();
    node.path = fmt::format("node {}: ranks {} to {}", first / ranks_per_node, first, last);
    for (std::uint32_t rank = first; rank <= last; ++rank) {
      node.bytes += ranks[rank].bytes;
      node.tiles += ranks[rank].tiles;
      node.unreadable_tiles += ranks[rank].unreadable_tiles;
    }
    node.mark = node.unreadable_tiles != 0 ? 2 : 0;
  }
  std::ranges::stable_sort(nodes, std::greater(), &FileShare::unreadable_tiles);
  if (nodes.size() > kMaxFileShares) nodes.resize(kMaxFileShares);
  return nodes;
}

}  // namespace shw
