// What the index beside plain safetensors files says, read as Python reads it, and who goes by it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/io/source.h"
#include "core/model/builder.h"

namespace shw {

using WeightMap = std::vector<std::pair<std::string, std::string>>;  // FQN, file

// Nothing where there is no index, or one that cannot be used; then `finding` says why. `total`:
// metadata.total_size, where it is a whole number.
std::optional<WeightMap> read_weight_map(const Directory& directory, const std::string& path,
                                         std::optional<Finding>& finding,
                                         std::optional<std::uint64_t>* total = nullptr);

// An index that names nothing of what lies here.
Finding without_its_files(const Directory& directory, const std::string& index,
                          const WeightMap& map);
// One that transformers never opens, because the one file lies beside it.
void check_passed_over(CheckpointBuilder& builder, const std::string& index, const WeightMap& map,
                       const Directory& directory);

}  // namespace shw
