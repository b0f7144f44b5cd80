#include "core/formats/megatron_legacy/legacy_names.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "core/base/words.h"

namespace shw {
namespace {

constexpr std::string_view kLegacyFolder = "mp_rank_";
constexpr std::int64_t kMaxLegacyRanks = 1 << 16;
constexpr auto kModelFiles =
    std::to_array<std::string_view>({"model_optim_rng.pt", "model_rng.pt"});
constexpr auto kLegacyFiles = std::to_array<std::string_view>(
    {"model_optim_rng.pt", "model_rng.pt", "distrib_optim.pt", "optim.pt"});

}  // namespace

std::optional<LegacyFolder> parse_legacy_folder(std::string_view name) {
  if (!name.starts_with(kLegacyFolder)) return std::nullopt;
  name.remove_prefix(kLegacyFolder.size());
  std::vector<std::uint32_t> numbers;
  while (true) {
    const auto number = consume_number(name);
    if (!number || *number >= kMaxLegacyRanks || numbers.size() == 3) return std::nullopt;
    numbers.push_back(static_cast<std::uint32_t>(*number));
    if (name.empty()) break;
    if (name.front() != '_') return std::nullopt;
    name.remove_prefix(1);
  }
  return LegacyFolder{numbers.front(), {numbers.begin() + 1, numbers.end()}};
}

bool is_legacy_model_file(std::string_view name) {
  return std::find(kModelFiles.begin(), kModelFiles.end(), name) != kModelFiles.end();
}

LegacyPlace legacy_place(const LegacyFolder& folder, const LegacySizes& sizes) {
  LegacyPlace place{folder.tensor, 0, 0};
  if (folder.more.size() == 2) {
    place.pipeline = folder.more[0];
    place.expert = folder.more[1];
  } else if (folder.more.size() == 1) {
    const bool is_expert = sizes.pipeline == 1 && sizes.expert > 1;
    (is_expert ? place.expert : place.pipeline) = folder.more[0];
  }
  return place;
}

std::string legacy_folder_name(const LegacyPlace& place, const LegacySizes& sizes) {
  std::string name = fmt::format("mp_rank_{:02}", place.tensor);
  if (sizes.pipeline > 1) name += fmt::format("_{:03}", place.pipeline);
  if (sizes.expert > 1) name += fmt::format("_{:03}", place.expert);
  return name;
}

std::map<std::string, std::vector<std::string>> legacy_folders(std::span<const Entry> entries) {
  std::map<std::string, std::vector<std::string>> folders;
  for (const Entry& entry : entries) {
    const std::size_t slash = entry.path.find('/');
    if (entry.kind != EntryKind::kFile || slash == std::string::npos) continue;
    const std::string_view name = std::string_view(entry.path).substr(slash + 1);
    const bool is_own =
        std::find(kLegacyFiles.begin(), kLegacyFiles.end(), name) != kLegacyFiles.end();
    std::string folder = entry.path.substr(0, slash);
    if (is_own && parse_legacy_folder(folder)) folders[std::move(folder)].emplace_back(name);
  }
  return folders;
}

}  // namespace shw
