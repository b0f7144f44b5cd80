// Files and ranks in the overview: bytes, tiles and damage of each file, the damaged ones first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/session/session.h"

namespace shw {

struct FileShare {
  std::string path;
  std::optional<std::uint32_t> rank;
  std::uint64_t bytes = 0;  // on disk
  std::uint32_t tiles = 0, unreadable_tiles = 0;
  std::uint8_t mark = 0;  // worst severity + 1 of findings about it
  bool is_missing = false;
};

// Amounts that a rank has written, over all tensors.
struct RankShare {
  std::uint32_t tensors = 0, tiles = 0;
  std::uint64_t bytes = 0;  // of the elements of its tiles
  std::uint32_t unreadable_tiles = 0;
  std::uint64_t unreadable_bytes = 0;
};

struct FileShares {
  std::vector<FileShare> files;  // damaged first, then the largest; at most kMaxFileShares
  std::size_t more = 0, more_damaged = 0;
  std::uint64_t most_bytes = 0;
};

inline constexpr std::size_t kMaxFileShares = 12;
// `marks`: by file, as in FindingEffects.
FileShares make_file_overview(const Snapshot& snapshot, const std::vector<std::uint8_t>& marks);

// "Ranks 8 to 15 of 64 lost tiles: node 1, if a node has 8 ranks."; empty if no rank lost any.
// `ranks_per_node` 0: usual numbers are tried.
std::string damaged_ranks_text(std::span<const RankShare> ranks, std::uint32_t ranks_per_node);
// Sums over the ranks of each node, the damaged ones first, at most kMaxFileShares; empty if there
// is only one node or `ranks_per_node` is 0. `path`: "node 1: ranks 8 to 15".
std::vector<FileShare> node_shares(std::span<const RankShare> ranks, std::uint32_t ranks_per_node);

}  // namespace shw
