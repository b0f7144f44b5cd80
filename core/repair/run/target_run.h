// Options of a run that writes a target, and texts for its certificate.
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
  ResultFormat form;                       // `out` is the output folder
  std::vector<std::string> steps;          // as text, for the certificate
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
