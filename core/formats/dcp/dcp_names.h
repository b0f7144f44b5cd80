// File names of torch.distributed.checkpoint.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/source.h"

namespace shw {

inline constexpr std::string_view kDcpMetadataName = ".metadata";
inline constexpr std::string_view kDcpDataSuffix = ".distcp";

// The name of a data file: "__3_1.distcp".
std::string distcp_name(std::uint32_t rank, std::uint64_t number);
// The writer's rank in a data file's name, e.g. "__12_0.distcp" or "hint__12_0.distcp".
std::optional<std::uint32_t> rank_in_distcp_name(std::string_view path);
// Sorted ranks of the `__R.metadata` files at the top of a directory.
std::vector<std::uint32_t> rank_local_metadata(std::span<const Entry> entries);
// The name of a rank's metadata file: "__3.metadata".
std::string rank_local_name(std::uint32_t rank);

// True for metadata of one rank or of all.
bool is_dcp_metadata(std::string_view path);

}  // namespace shw
