// Writes what steps have arranged into a new folder, and proves it: every element of what was
// written is read back and held against where it comes from.
#pragma once

#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/run_limits.h"
#include "core/io/store.h"
#include "core/repair/proof/certificate.h"
#include "core/repair/run/repair_result.h"
#include "core/transform/lower.h"

namespace shw {

struct TargetRun {
  WantedForm form;                         // its `out` is the folder
  std::vector<std::string> steps;          // in words, for the certificate
  std::vector<Operation> operations = {};  // Certificate::operations
  std::string plan = {};                   // Certificate::plan
  bool integrity = false;                  // ApplyOptions::integrity
  std::string request = {};                // FolderRun::request
  std::string partial = {};                // FolderRun::partial
  Team* team = nullptr;                    // FolderRun::team
  std::uint64_t memory = kDefaultMemory;
  DeviceOptions device = {};  // ApplyOptions::device
  bool weights_only = false;  // Plan::weights_only
};

// Of a target that moves no byte, written as `outputs` and opened again as `result`: every tile is
// the item that it was, and what is certified of it.
Result<Certificate> certify_in_place(const TargetState& all, const TargetRun& run,
                                     const Outputs& outputs, const Checkpoint& result,
                                     WritableDirectory& files, Progress* progress);

Result<RepairResult> make_target(Store& store, const TargetState& all, const TargetRun& run,
                                 Progress* progress);

}  // namespace shw
