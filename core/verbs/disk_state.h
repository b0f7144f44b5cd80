// The state of an opened checkpoint's files on disk, to notice changes by other processes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/checkpoint.h"

namespace shw::verbs {

struct DiskFile {
  std::string path;  // relative to the checkpoint
  std::uint64_t size = 0;
  std::int64_t modified_ns = 0, changed_ns = 0;
  bool is_there = false;
  friend bool operator==(const DiskFile&, const DiskFile&) = default;
};
struct DiskState {
  std::vector<DiskFile> files;  // at most 20,000
  // Sorted names of further files in the top folder whose ending a file of the checkpoint has.
  std::vector<std::string> others;
};

// Empty for remote checkpoints.
DiskState disk_state(const Checkpoint& checkpoint);

// "2 files were written, 1 file was removed (__3_0.distcp, ...)"; empty if nothing changed.
std::string changes_since(const Checkpoint& checkpoint, const DiskState& before);

}  // namespace shw::verbs
