// Creates a small HDF5 file through which h5py reads a checkpoint's tensors in place.
//
//   /tensors/<fqn>   complete tensors: external segments, or a virtual dataset over /sources
//   /partial/<fqn>   incomplete tensors; missing elements read as NaN (or the extreme integer;
//                    for bool 255, since its bytes are numbers here)
//   /sources         files as elements of one dtype, tiles of many runs, and stacks of tensors
//                    with equal tile layouts
//   /files           path and size of mapped files: HDF5 reads zeros beyond a file's end
//   /left_out        fqn, why
//
// Every dataset has its dtype as an attribute; dtypes without an HDF5 type are bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/model/checkpoint.h"

namespace shw {

enum class Hdf5Paths : std::uint8_t { kAbsolute, kRelative };

struct ExportOptions {
  std::string out;  // must not exist
  Hdf5Paths paths = Hdf5Paths::kAbsolute;
  bool copy = false;                   // copies what cannot be mapped in place
  std::vector<Finding> findings = {};  // included with the tensors that they name
  // Tensors that are omitted because their elements are not trusted: FQN, and the reason as a
  // clause.
  std::map<std::string, std::string, std::less<>> doubts = {};
};

struct UnexportedTensor {
  std::string fqn;
  std::string why;          // one clause
  bool is_damaged = false;  // damage; otherwise HDF5 cannot express the layout
  bool can_be_copied = false;
  bool is_in_part = false;   // under /partial
  std::int64_t missing = 0;  // number of elements
};

struct Exported {
  std::string output;
  std::uint64_t tensors = 0;  // under /tensors
  std::uint64_t bytes = 0;    // of the new file
  std::vector<std::string> copied = {};
  std::vector<UnexportedTensor> left_out = {};
  std::vector<std::string> notes = {};   // further remarks, one sentence each
  std::vector<std::string> unread = {};  // files and records of unknown contents
  bool is_whole() const;                 // nothing is damaged or missing
};

// Environment variable that readers must set for relative paths before they open the file.
inline constexpr const char* kRelativeHint = "HDF5_EXTFILE_PREFIX='${ORIGIN}'";

// Reads metadata and headers, and tensor data only to copy it. The file gets its name once it is
// complete. Only local files can be written.
Result<Exported> export_hdf5(const Checkpoint& checkpoint, const ExportOptions& options,
                             Progress* progress);

}  // namespace shw
