// Which files a checkpoint of HDF5 is made of, and what each of them says.
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
// A zip with config.json, metadata.json and, as it is, model.weights.h5.
inline constexpr std::string_view kKerasArchiveSuffix = ".keras";
bool has_hdf5_name(std::string_view path);  // "model.weights.h5", "rank_3.hdf5"

// Which file holds which group: what is missing is known by it.
using KerasIndex = std::vector<std::pair<std::string, std::string>>;  // group, file

struct Hdf5Files {
  std::vector<std::string> files;
  KerasIndex index;  // empty where there is none
};

// By what lies at the top of the directory, or by its index.
Result<Hdf5Files> list_hdf5_files(const Directory& directory);

struct Hdf5Shard {
  std::string path;
  std::uint64_t begin = 0;  // of the HDF5 file in it: behind the head of an archive
  std::uint64_t size = 0;   // of the HDF5 file
  Hdf5Walk walk;
};

// Of an archive, the CRC-32 of every record in it; other files have none.
Result<DataCheck> check_keras_archive(const std::shared_ptr<const ByteSource>& file,
                                      Progress* progress);

// kUnsupported where it is an archive that holds its weights compressed.
Result<Hdf5Shard> read_hdf5_shard(const Directory& directory, const std::string& path);

}  // namespace shw
