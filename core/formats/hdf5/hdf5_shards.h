// Files of an HDF5 checkpoint, and the contents of each.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/formats/common/item_header.h"
#include "core/formats/hdf5/hdf5_walk.h"

namespace shw {

inline constexpr std::string_view kKerasIndexSuffix = ".weights.json";
// A zip with config.json, metadata.json and the uncompressed model.weights.h5.
inline constexpr std::string_view kKerasArchiveSuffix = ".keras";
bool has_hdf5_name(std::string_view path);  // "model.weights.h5", "rank_3.hdf5"

// The file of each group, to report missing files.
using KerasIndex = std::vector<std::pair<std::string, std::string>>;  // group, file

struct Hdf5Files {
  std::vector<std::string> files;
  KerasIndex index;  // empty if there is none
};

// Lists the files at the top of the directory, or those of its index.
Result<Hdf5Files> list_hdf5_files(const Directory& directory);

struct Hdf5Shard {
  std::string path;
  std::uint64_t begin = 0;  // of the HDF5 file inside an archive
  std::uint64_t size = 0;   // of the HDF5 file
  Hdf5Walk walk;
};

// Verifies the CRC-32 of every record of an archive; other files have none.
Result<DataCheck> check_keras_archive(const std::shared_ptr<const ByteSource>& file,
                                      Progress* progress);

// kUnsupported for archives with compressed weights.
Result<Hdf5Shard> read_hdf5_shard(const Directory& directory, const std::string& path);

}  // namespace shw
