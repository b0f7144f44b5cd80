#include "core/formats/rank_files/rank_names.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/words.h"
#include "core/formats/common/top_file.h"

namespace shw {
namespace {

constexpr std::string_view kWorldMark = "_world_size_";
// Numbers from this limit on are not ranks.
constexpr std::uint32_t kMostFileRanks = 1 << 16;

}  // namespace

std::optional<RankFileName> parse_rank_file(std::string_view name) {
  const std::size_t mark = name.find(kWorldMark);
  if (mark == std::string_view::npos || mark == 0) return std::nullopt;
  std::string_view rest = name.substr(mark + kWorldMark.size());
  auto ranks = take_number(rest);
  constexpr std::string_view kRank = "_rank_";
  if (!ranks || !rest.starts_with(kRank)) return std::nullopt;
  rest.remove_prefix(kRank.size());
  auto rank = take_number(rest);
  if (!rank || rest != ".pt" || *ranks == 0 || *ranks > kMostFileRanks || *rank >= *ranks)
    return std::nullopt;
  return RankFileName{std::string(name.substr(0, mark)), *ranks, *rank};
}

std::string rank_file_name(const RankFileName& name) {
  return fmt::format("{}_world_size_{}_rank_{}.pt", name.kind, name.ranks, name.rank);
}

std::optional<std::uint32_t> rank_of_file(std::string_view path) {
  auto name = parse_rank_file(path.substr(path.rfind('/') + 1));
  return name ? std::optional(name->rank) : std::nullopt;
}

RankFiles rank_files_of(std::span<const Entry> entries) {
  std::map<std::uint32_t, RankFiles> saves;
  std::map<std::uint32_t, std::size_t> there;
  for (const Entry& entry : entries) {
    auto name = is_top_file(entry) ? parse_rank_file(entry.path) : std::nullopt;
    if (!name) continue;
    saves[name->ranks].by_kind[name->kind].emplace(name->rank, entry.path);
    ++there[name->ranks];
  }
  RankFiles best;
  std::size_t fewest = 0;
  for (auto& [ranks, files] : saves) {
    const std::size_t missing = files.by_kind.size() * ranks - there[ranks];
    if (best.ranks != 0 && missing >= fewest) continue;
    best = files;
    best.ranks = ranks;
    fewest = missing;
  }
  for (const auto& [ranks, files] : saves) {
    if (ranks == best.ranks) continue;
    for (const auto& [kind, paths] : files.by_kind)
      for (const auto& [rank, path] : paths) best.others.push_back(path);
  }
  return best;
}

}  // namespace shw
