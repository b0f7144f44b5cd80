// What a run of a target is asked, and what its certificate says of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/run_limits.h"
#include "core/base/team.h"
#include "core/exec/device.h"
#include "core/repair/plan/plan_types.h"
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

}  // namespace shw
