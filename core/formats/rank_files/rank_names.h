// Names of per-rank files of a sharded save.
//
//   file = KIND_world_size_W_rank_R.pt      verl; KIND = model | optim | extra_state | ...
//        | STEM_rank_R.pt, rank-R.pt ...    any program; W is the number of files. Only for files
//                                           whose tensors carry their placements
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/source.h"

namespace shw {

struct RankFileName {
  std::string kind;
  std::uint32_t ranks = 0, rank = 0;
};
std::optional<RankFileName> parse_rank_file(std::string_view name);
std::string rank_file_name(const RankFileName& name);
std::optional<std::uint32_t> rank_of_file(std::string_view path);

// Files of one save.
struct RankFiles {
  std::uint32_t ranks = 0;
  std::map<std::string, std::map<std::uint32_t, std::string>> by_kind = {};  // kind: rank: path
  std::vector<std::string> others = {};  // files of saves by another number of ranks
};
// If there are saves by different numbers of ranks, chooses the one with the fewest missing files.
RankFiles rank_files_of(std::span<const Entry> entries);
// Files whose names give only the rank, if there is one series of them from rank 0 on without a
// gap; otherwise empty. Their kind is "model".
RankFiles numbered_rank_files(std::span<const Entry> entries);

}  // namespace shw
