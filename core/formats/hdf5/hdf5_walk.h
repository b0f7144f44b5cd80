// All datasets of one HDF5 file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/formats/hdf5/hdf5_object.h"

namespace shw {

// An object may have several names: its array is one.
struct Hdf5NamedArray {
  std::string path;  // without the first slash
  std::shared_ptr<const Result<Hdf5Array>> array;
};
struct Hdf5Walk {
  std::vector<Hdf5NamedArray> arrays;
  // Groups whose members cannot be told.
  std::vector<std::pair<std::string, Error>> lost_groups;
  // Links into other files, which are not followed: path and file.
  std::vector<std::pair<std::string, std::string>> links_outside;
  // Links in the file that lead to nothing of it: kDamaged, or kUnsupported where something may be
  // there that is not looked at.
  std::vector<std::pair<std::string, Error>> lost_links;
  // Datasets whose elements are said to lie where others do, or what describes the file. A dataset
  // has its bytes for itself, so that one of two places is wrong.
  std::vector<std::pair<std::string, Error>> overlaps;
  std::uint64_t end_of_file = 0;  // as the superblock says it
  bool was_left_open = false;     // by its writer
};

// An error where not even the root can be read. `begin`: where the source lies in its file, in
// which all places are told.
Result<Hdf5Walk> walk_hdf5(std::shared_ptr<const ByteSource> source, std::uint64_t begin = 0);

}  // namespace shw
