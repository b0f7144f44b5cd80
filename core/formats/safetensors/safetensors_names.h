#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shw {

inline constexpr std::string_view kSafetensorsSuffix = ".safetensors";

// The writer's rank in a sharded file's name: 12 for
// "shard-00013-model-00001-of-00002.safetensors".
std::optional<std::uint32_t> rank_in_shard_name(std::string_view path);

// Missing files of numbered sequences: for "model-00001-of-00003.safetensors" alone, the second and
// third.
std::vector<std::string> missing_parts(const std::vector<std::string>& paths);

inline constexpr std::string_view kAdapterStem = "adapter_model";  // PEFT
// True for names of two parts with equal counts, or of shards by ranks.
bool are_parts_of_one_save(std::string_view a, std::string_view b);
// "model" for "model.safetensors" and "model-00001-of-00002.safetensors", if some program loads a
// whole model by that name; else empty.
std::string_view model_stem(std::string_view path);

}  // namespace shw
