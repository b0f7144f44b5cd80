// Files that a trainer keeps beside the weights: its optimizer's states (optimizer.pt,
// optimizer.bin) and what else a run needs to go on (scheduler, scaler, random states). They are no
// part of the checkpoint that was opened; each is opened by itself.
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
  std::vector<Finding> findings;  // about a file each, with its path as the subject
  std::vector<Unjudged> unjudged;
};

// What check() says of a checkpoint alone, at the same depth.
using CheckAlone = std::function<Result<std::vector<Finding>>(const Checkpoint&)>;

// Whether each file opens, at any depth that reads headers; and for optimizers what `check_alone`
// says of them. `known`: what rules have reported already.
Result<SideFiles> check_side_files(const Checkpoint& checkpoint, Depth depth,
                                   std::span<const Finding> known, const CheckAlone& check_alone,
                                   Progress* progress);

}  // namespace shw
