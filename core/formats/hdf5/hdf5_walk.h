// Finds all datasets of one HDF5 file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/formats/hdf5/hdf5_object.h"

namespace shw {

// A dataset with one of its names; objects may have several.
struct Hdf5NamedArray {
  std::string path;  // without the first slash
  std::shared_ptr<const Result<Hdf5Array>> array;
};
struct Hdf5Walk {
  std::vector<Hdf5NamedArray> arrays;
  // Groups that cannot be listed.
  std::vector<std::pair<std::string, Error>> lost_groups;
  // Links into other files, which are not followed: path and file.
  std::vector<std::pair<std::string, std::string>> links_outside;
  // Links without a target in this file: kDamaged, or kUnsupported if the target may be in an
  // unsupported part.
  std::vector<std::pair<std::string, Error>> lost_links;
  // Datasets whose elements overlap other ones or metadata. Datasets never share bytes, so one of
  // both places is wrong.
  std::vector<std::pair<std::string, Error>> overlaps;
  std::uint64_t end_of_file = 0;  // according to the superblock
  bool was_left_open = false;     // by its writer
};

// An error if not even the root is readable. `begin`: offset of the source in its file, used in
// errors.
Result<Hdf5Walk> walk_hdf5(std::shared_ptr<const ByteSource> source, std::uint64_t begin = 0);

}  // namespace shw
