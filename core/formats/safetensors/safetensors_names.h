#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace shw {

inline constexpr std::string_view kSafetensorsSuffix = ".safetensors";

// The writer's rank in a sharded file's name: "shard-00013-model-00001-of-00002.safetensors" is of
// rank 12.
std::optional<std::uint32_t> rank_in_shard_name(std::string_view path);

}  // namespace shw
