// Files and ranks in the overview: bytes, tiles and damage of each file, the damaged ones first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
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

struct FileShares {
  std::vector<FileShare> files;  // damaged first, then the largest; at most kMostFileShares
  std::size_t more = 0, more_damaged = 0;
  std::uint64_t most_bytes = 0;
  // "Ranks 8 to 15 lost tiles: node 1, if a node has 8 ranks."; empty if no rank lost any.
  std::string damaged_ranks;
};

inline constexpr std::size_t kMostFileShares = 12;
// `marks`: by file, as in FoundAbout.
FileShares make_file_shares(const Snapshot& snapshot, const std::vector<std::uint8_t>& marks);

// "Ranks 8 to 15 lost tiles: ..." for sorted ranks of `all`; public for tests.
std::string damaged_ranks_text(const std::vector<std::uint32_t>& damaged, std::uint32_t all);

}  // namespace shw
