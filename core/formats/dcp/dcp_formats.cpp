#include "core/formats/dcp/dcp_formats.h"

#include <algorithm>

#include "core/base/words.h"
#include "core/formats/common/codecs.h"

namespace shw {
namespace {

std::string file_of_rank(std::uint32_t rank) {
  return "__" + std::to_string(rank) + "_0.distcp";
}

constexpr FormatTraits kOneIndex = {
    .has_index = true,
    .one_index_file = true,
    .index_file = kDcpMetadataName,
    .writer_of_file = rank_in_distcp_name,
    .data_suffix = ".distcp",
    .records_every_item = true,
};

constexpr FormatTraits stock_traits() {
  FormatTraits traits = kOneIndex;
  traits.index_comes_last = true;
  traits.file_of_rank = file_of_rank;
  return traits;
}

// Replicas of other ranks are in the files and passed over by merging.
constexpr FormatTraits rank_local_traits() {
  FormatTraits traits = kOneIndex;
  traits.one_index_file = traits.records_every_item = false;
  traits.index_file = "__0.metadata";
  traits.index_of_rank = rank_local_name;
  return traits;
}

}  // namespace

std::optional<std::uint32_t> rank_in_distcp_name(std::string_view path) {
  path = path.substr(path.rfind('/') + 1);
  std::size_t start = path.ends_with(".distcp") ? path.rfind("__") : std::string_view::npos;
  if (start == std::string_view::npos) return std::nullopt;
  path.remove_prefix(start + 2);
  auto rank = take_number(path);
  if (!rank || !path.starts_with("_")) return std::nullopt;
  path.remove_prefix(1);
  return take_number(path) && path == ".distcp" ? rank : std::nullopt;
}

std::string rank_local_name(std::uint32_t rank) {
  return "__" + std::to_string(rank) + std::string(kDcpMetadataName);
}

std::vector<std::uint32_t> rank_local_metadata(std::span<const Entry> entries) {
  std::vector<std::uint32_t> ranks;
  for (const Entry& entry : entries) {
    std::string_view name = entry.path;
    if (!name.starts_with("__")) continue;
    name.remove_prefix(2);
    // "__007.metadata" is not torch's: the name must be made again from the number.
    if (auto rank = take_number(name); rank && rank_local_name(*rank) == entry.path)
      ranks.push_back(*rank);
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

constexpr Format kDcpFormat = {
    "dcp", "DCP", &kTorchZipCodec, Rewrite::kIndex, stock_traits(),
};
constexpr Format kDcpRankLocalFormat = {
    "dcp-rank-local", "DCP, one metadata a rank", &kTorchZipCodec,
    Rewrite::kIndex,  rank_local_traits(),
};
constexpr Format kMegatronFormat = {
    "megatron-dist", "Megatron torch_dist", &kTorchZipCodec, Rewrite::kIndex, kOneIndex,
};

}  // namespace shw
