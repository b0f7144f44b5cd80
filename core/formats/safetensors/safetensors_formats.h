// Plain safetensors files, one or many, and the sharded ones of torch's HuggingFaceStorageWriter.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/model/format.h"

namespace shw {

inline constexpr std::string_view kSafetensorsSuffix = ".safetensors";

extern const Format kSafetensorsFormat, kHfShardedFormat;

// The writer's rank in a sharded file's name: "shard-00013-model-00001-of-00002.safetensors" is of
// rank 12.
std::optional<std::uint32_t> rank_in_shard_name(std::string_view path);

}  // namespace shw
