// Files that a trainer keeps next to the weights: optimizer states (optimizer.pt, optimizer.bin)
// and other state for resuming (scheduler, scaler, random states). They do not belong to the opened
// checkpoint; each is opened separately.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/facts/depth.h"
#include "core/model/checkpoint.h"
#include "core/rules/unjudged.h"

namespace shw {

struct SideFiles {
  std::vector<Finding> findings;  // about one file each, with its path as the subject
  std::vector<Unjudged> unjudged;
};

// Checks a checkpoint by itself, at the same depth.
using CheckSingleCheckpoint = std::function<Result<std::vector<Finding>>(const Checkpoint&)>;

// Checks that each file opens, at any depth that reads headers, and runs `check_alone` on
// optimizers. `known`: findings that rules have reported already.
Result<SideFiles> check_side_files(const Checkpoint& checkpoint, Depth depth,
                                   std::span<const Finding> known,
                                   const CheckSingleCheckpoint& check_alone, Progress* progress);

}  // namespace shw
