// What the index beside several files of one model says (model.safetensors.index.json,
// pytorch_model.bin.index.json), read as Python reads it, and who goes by it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/io/source.h"
#include "core/model/builder.h"

namespace shw {

using WeightMap = std::vector<std::pair<std::string, std::string>>;  // FQN, file

// What transformers looks for: an index of that name, and before it the one file.
struct IndexNames {
  std::string_view usual, single;
};

// Nothing where there is no index, or one that cannot be used; then `finding` says why. `total`:
// metadata.total_size, where it is a whole number.
std::optional<WeightMap> read_weight_map(const Directory& directory, const std::string& path,
                                         std::optional<Finding>& finding,
                                         std::optional<std::uint64_t>* total = nullptr);

// Whether transformers looks for one file before the index, and that file lies here.
bool is_passed_over(const Directory& directory, const IndexNames& names, const std::string& index);
// The files that it names and that are not there.
std::vector<std::string> files_not_there(const Directory& directory, const WeightMap& map);

// An index that names nothing of what lies here.
Finding without_its_files(const Directory& directory, const IndexNames& names,
                          const std::string& index, const WeightMap& map);
// One that transformers never opens, because the one file lies beside it.
void check_passed_over(CheckpointBuilder& builder, const IndexNames& names,
                       const std::string& index, const WeightMap& map, const Directory& directory);

}  // namespace shw
