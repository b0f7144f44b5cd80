#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shw {

inline constexpr std::string_view kSafetensorsSuffix = ".safetensors";

// The writer's rank in a sharded file's name: "shard-00013-model-00001-of-00002.safetensors" is of
// rank 12.
std::optional<std::uint32_t> rank_in_shard_name(std::string_view path);

// The files that the names of others promise and that are not among them: of
// "model-00001-of-00003.safetensors" alone the second and the third.
std::vector<std::string> missing_parts(const std::vector<std::string>& paths);

inline constexpr std::string_view kAdapterStem = "adapter_model";  // PEFT
// By their names: two parts with one count, or shards of ranks.
bool are_parts_of_one_save(std::string_view a, std::string_view b);
// "model" of "model.safetensors" and of "model-00001-of-00002.safetensors", where some program
// looks for a whole model by that name; empty for all other files.
std::string_view model_stem(std::string_view path);
// "model-rank-0-part-0.safetensors": vLLM's sharded state, where each rank has its own part of a
// tensor under the same name, and no file says which.
bool is_rank_part(std::string_view path);

}  // namespace shw
