// Forecast of a repair before anything is written: a dry run.
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

// A device that could compute elements, and how long the whole run would take with it.
struct DeviceEstimate {
  std::string device;  // "cpu", "cuda:0": as in the option
  std::string name;    // "2 threads", or the GPU's name
  double seconds = 0;
  std::string failed = {};  // why it cannot be predicted; may be empty
};

struct RepairEstimate {
  std::uint64_t files_copied = 0, bytes_copied = 0;  // files that are copied whole
  std::uint64_t files_made = 0, tiles_made = 0, tiles_kept = 0;
  std::uint64_t bytes_read = 0;     // from the checkpoint, copied files included
  std::uint64_t bytes_written = 0;  // copied files included, metadata excluded
  std::string program;              // hash of the program
  Forecast forecast;                // on the CPU
  std::vector<DeviceEstimate> devices;
  std::string no_gpu;  // why no GPU is available; empty if one is
};

// Forecast for a new folder. Refuses everything that apply would refuse; writes nothing.
Result<RepairEstimate> outlook_of(const Checkpoint& checkpoint, const Plan& plan,
                                  const ApplyOptions& options);

}  // namespace shw
