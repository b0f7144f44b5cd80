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
using DiskState = std::vector<DiskFile>;

// At most 20,000 files, of local checkpoints; empty for others.
DiskState disk_state(const Checkpoint& checkpoint);

// "2 files were written, 1 file was removed (__3_0.distcp, ...)"; empty if nothing changed.
std::string changes_since(const Checkpoint& checkpoint, const DiskState& before);

}  // namespace shw::verbs
