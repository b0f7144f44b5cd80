// The .safetensors files of a folder that are one model: which of them, and their headers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/formats/common/index_checks.h"
#include "core/formats/common/safetensors_header.h"
#include "core/formats/common/weight_map.h"
#include "core/formats/safetensors/safetensors_index.h"
#include "core/io/source.h"
#include "core/model/finding.h"

namespace shw {

inline constexpr IndexNames kSafetensorsIndexNames{kSafetensorsIndex, kSafetensorsSingle};

// One file with its header.
struct SafetensorsFile {
  std::string path;
  SafetensorsHeader header;
  std::optional<ShardingInfo> sharding;
};

// Files that were found, and the contents of the index.
struct SafetensorsFiles {
  std::vector<std::string> paths;
  std::optional<std::string> index_path = {};
  std::optional<WeightMap> index = {};      // empty if there is no usable one
  std::optional<std::uint64_t> total = {};  // total size according to it
  std::optional<Finding> finding = {};      // why the index cannot be used
  std::vector<std::string> adapters = {};   // adapter files next to a model
  std::vector<std::string> variants = {};   // other forms of the model
  std::vector<std::string> steps = {};      // earlier steps of a training
  std::vector<std::string> not_there = {};  // files named by the index that are missing
  // Headers by path, or the errors of reading them; errors only matter for files of the checkpoint.
  std::map<std::string, Result<SafetensorsFile>> headers = {};
};

// Names, sizes and paths for comparison with an index.
IndexedFile indexed_file(const SafetensorsFile& file);

// Reads the index, if there is one, and the headers of all files that may be needed, in parallel.
// An error if the folder has none or several checkpoints.
Result<SafetensorsFiles> find_safetensors_files(const Directory& directory, Progress* progress);

}  // namespace shw
