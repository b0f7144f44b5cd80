#include "core/formats/dcp/dcp_names.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/words.h"

namespace shw {

std::string distcp_name(std::uint32_t rank, std::uint64_t number) {
  return fmt::format("__{}_{}{}", rank, number, kDcpDataSuffix);
}

std::optional<std::uint32_t> rank_in_distcp_name(std::string_view path) {
  path = path.substr(path.rfind('/') + 1);
  std::size_t start = path.ends_with(".distcp") ? path.rfind("__") : std::string_view::npos;
  if (start == std::string_view::npos) return std::nullopt;
  path.remove_prefix(start + 2);
  auto rank = consume_number(path);
  if (!rank || !path.starts_with("_")) return std::nullopt;
  path.remove_prefix(1);
  return consume_number(path) && path == ".distcp" ? rank : std::nullopt;
}

std::string rank_local_name(std::uint32_t rank) {
  return fmt::format("__{}{}", rank, kDcpMetadataName);
}

std::vector<std::uint32_t> rank_local_metadata(std::span<const Entry> entries) {
  std::vector<std::uint32_t> ranks;
  for (const Entry& entry : entries) {
    std::string_view name = entry.path;
    if (!name.starts_with("__")) continue;
    name.remove_prefix(2);
    // "__007.metadata" is not torch's: the name must result from the number.
    if (auto rank = consume_number(name); rank && rank_local_name(*rank) == entry.path)
      ranks.push_back(*rank);
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

bool is_dcp_metadata(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  return name == kDcpMetadataName || (name.starts_with("__") && name.ends_with(kDcpMetadataName));
}

}  // namespace shw
