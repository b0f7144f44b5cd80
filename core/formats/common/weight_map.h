// The index of a multi-file model (model.safetensors.index.json, pytorch_model.bin.index.json),
// parsed as Python does, and which loaders use it.
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

// Names that transformers looks for: an index, and before it a single file.
struct IndexNames {
  std::string_view usual, single;
};

// nullopt if there is no index or an unusable one, which `finding` then explains. `total`:
// metadata.total_size, if it is an integer.
std::optional<WeightMap> read_weight_map(const Directory& directory, const std::string& path,
                                         std::optional<Finding>& finding,
                                         std::optional<std::uint64_t>* total = nullptr);

// The files that the index names, each once and sorted. Views into `map`.
std::vector<std::string_view> sorted_index_files(const WeightMap& map);

// True if transformers finds a single file in the folder and therefore ignores the index.
bool is_ignored_by_transformers(const Directory& directory, const IndexNames& names,
                                const std::string& index);
// The files that the index names but that do not exist.
std::vector<std::string> missing_index_files(const Directory& directory, const WeightMap& map);

// Finding about an index that names none of the existing files.
Finding index_without_files_finding(const Directory& directory, const IndexNames& names,
                                    const std::string& index, const WeightMap& map);
// Reports an index that transformers ignores because the single file exists.
void report_ignored_index(CheckpointBuilder& builder, const IndexNames& names,
                          const std::string& index, const WeightMap& map,
                          const Directory& directory);

}  // namespace shw
