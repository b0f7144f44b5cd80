// torch.distributed.checkpoint and its relatives: one .metadata, one a rank, and Megatron's
// torch_dist, which is DCP with a metadata.json beside it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/source.h"
#include "core/model/format.h"

namespace shw {

inline constexpr std::string_view kDcpMetadataName = ".metadata";

extern const Format kDcpFormat, kDcpRankLocalFormat, kMegatronFormat;

// The writer's rank in a data file's name: "__12_0.distcp", "hint__12_0.distcp".
std::optional<std::uint32_t> rank_in_distcp_name(std::string_view path);
// Ranks of the `__R.metadata` files at the top of a directory, ascending.
std::vector<std::uint32_t> rank_local_metadata(std::span<const Entry> entries);
// "__3.metadata"
std::string rank_local_name(std::uint32_t rank);

}  // namespace shw
