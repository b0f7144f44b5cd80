#include "core/formats/rank_files/rank_names.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/words.h"
#include "core/formats/common/top_file.h"

namespace shw {
namespace {

constexpr std::string_view kWorldMark = "_world_size_";
// Numbers from this limit on are not ranks.
constexpr std::uint32_t kMaxFileRanks = 1 << 16;

struct NumberedName {
  std::string around;  // the name without the number
  std::uint32_t rank = 0;
};

// "ckpt_rank_3.pt", "rank3.pth", "step10-rank-3.bin".
std::optional<NumberedName> parse_numbered(std::string_view name) {
  constexpr std::string_view kRank = "rank";
  const std::size_t word = name.rfind(kRank);
  const bool is_word = word != name.npos && (word == 0 || name[word - 1] == '_' ||
                                             name[word - 1] == '-' || name[word - 1] == '.');
  if (!is_word) return std::nullopt;
  std::string_view rest = name.substr(word + kRank.size());
  if (rest.starts_with('_') || rest.starts_with('-')) rest.remove_prefix(1);
  const std::string before(name.substr(0, name.size() - rest.size()));
  const auto rank = consume_number(rest);
  const bool is_file = rest == ".pt" || rest == ".pth" || rest == ".bin";
  if (!rank || !is_file || *rank >= kMaxFileRanks) return std::nullopt;
  return NumberedName{before + std::string(rest), static_cast<std::uint32_t>(*rank)};
}

}  // namespace

std::optional<RankFileName> parse_rank_file(std::string_view name) {
  const std::size_t mark = name.find(kWorldMark);
  if (mark == std::string_view::npos || mark == 0) return std::nullopt;
  std::string_view rest = name.substr(mark + kWorldMark.size());
  auto ranks = consume_number(rest);
  constexpr std::string_view kRank = "_rank_";
  if (!ranks || !rest.starts_with(kRank)) return std::nullopt;
  rest.remove_prefix(kRank.size());
  auto rank = consume_number(rest);
  if (!rank || rest != ".pt" || *ranks == 0 || *ranks > kMaxFileRanks || *rank >= *ranks)
    return std::nullopt;
  return RankFileName{std::string(name.substr(0, mark)), *ranks, *rank};
}

std::string rank_file_name(const RankFileName& name) {
  return fmt::format("{}_world_size_{}_rank_{}.pt", name.kind, name.ranks, name.rank);
}

std::optional<std::uint32_t> rank_of_file(std::string_view path) {
  auto name = parse_rank_file(path.substr(path.rfind('/') + 1));
  if (name) return name->rank;
  const auto numbered = parse_numbered(path.substr(path.rfind('/') + 1));
  return numbered ? std::optional(numbered->rank) : std::nullopt;
}

RankFiles numbered_rank_files(std::span<const Entry> entries) {
  std::map<std::string, std::map<std::uint32_t, std::string>> series;  // by name without the rank
  for (const Entry& entry : entries) {
    const auto name = is_top_file(entry) ? parse_numbered(entry.path) : std::nullopt;
    if (name) series[name->around].emplace(name->rank, entry.path);
  }
  if (series.size() != 1) return {};
  auto& paths = series.begin()->second;
  const auto ranks = static_cast<std::uint32_t>(paths.size());
  if (ranks < 2 || paths.rbegin()->first != ranks - 1) return {};
  return {ranks, {{"model", std::move(paths)}}};
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
