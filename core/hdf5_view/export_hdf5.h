// A small HDF5 file through which h5py reads every tensor of a checkpoint where it lies.
//
//   /tensors/<fqn>   what is whole: external segments, or a virtual dataset over /sources
//   /partial/<fqn>   what is there of the others; the rest reads as NaN (or the
//                    extreme value of whole numbers; of bool 255: its bytes are numbers here)
//   /sources         files as elements of one dtype, tiles that are many runs of them, and stacks
//                    of tensors whose tiles lie alike
//   /files           path and size of every file that is mapped: past an end HDF5 reads zeros
//   /left_out        fqn, why
//
// Every dataset says its dtype; what HDF5 has no type for is bytes.
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
  bool copy = false;                   // what cannot be mapped in place comes along as it reads
  std::vector<Finding> findings = {};  // told with the tensors that they name
  // By FQN, why elements that could be mapped are not to be believed, one clause: left out.
  std::map<std::string, std::string, std::less<>> doubts = {};
};

struct LeftOut {
  std::string fqn;
  std::string why;          // one clause
  bool is_damaged = false;  // or HDF5 cannot be told where it lies
  bool can_be_copied = false;
  bool is_in_part = false;   // under /partial
  std::int64_t missing = 0;  // elements
};

struct Exported {
  std::string output;
  std::uint64_t tensors = 0;  // under /tensors
  std::uint64_t bytes = 0;    // of the new file
  std::vector<std::string> copied = {};
  std::vector<LeftOut> left_out = {};
  std::vector<std::string> notes = {};   // what else is to be known, one sentence each
  std::vector<std::string> unread = {};  // files, records: what they hold nobody knows
  bool is_whole() const;                 // nothing is damaged or missing
};

// What a reader of relative paths has to say before it opens the file.
inline constexpr const char* kRelativeHint = "HDF5_EXTFILE_PREFIX='${ORIGIN}'";

// Metadata and headers are read, no tensor byte but those that are copied. The file appears under
// its name when it is complete. The library writes to this machine's own files only.
Result<Exported> export_hdf5(const Checkpoint& checkpoint, const ExportOptions& options,
                             Progress* progress);

}  // namespace shw
