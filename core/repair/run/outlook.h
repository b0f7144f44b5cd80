// What a repair comes to, before anything is written: a dry run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/exec/forecast.h"
#include "core/model/checkpoint.h"
#include "core/repair/plan/plan_types.h"
#include "core/repair/run/repair_result.h"

namespace shw {

// What could make the elements, and how long the whole run would take with it.
struct DeviceOutlook {
  std::string device;  // "cpu", "cuda:0": as it is asked for
  std::string name;    // "2 threads", or the GPU's
  double seconds = 0;
  std::string failed = {};  // why it cannot be predicted; may be empty
};

struct RepairOutlook {
  std::uint64_t files_copied = 0, bytes_copied = 0;  // whole files that come along
  std::uint64_t files_made = 0, tiles_made = 0, tiles_kept = 0;
  std::uint64_t bytes_read = 0;     // of the checkpoint, what is copied too
  std::uint64_t bytes_written = 0;  // what is copied too, but for metadata
  std::string program;              // its hash
  Forecast forecast;                // on the CPU
  std::vector<DeviceOutlook> devices;
  std::string no_gpu;  // why there is none; empty where there is one
};

// Into a new folder. Everything that can be refused is refused here; nothing is written.
Result<RepairOutlook> outlook_of(const Checkpoint& checkpoint, const Plan& plan,
                                 const ApplyOptions& options);

}  // namespace shw
