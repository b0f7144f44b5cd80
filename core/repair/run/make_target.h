// Writes a target into a new folder, and proves it: every element of what was written is read back
// and held against where it comes from.
#pragma once

#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/exec/folder_run.h"
#include "core/io/store.h"
#include "core/repair/proof/certificate.h"
#include "core/repair/run/repair_result.h"
#include "core/repair/run/target_run.h"

namespace shw {

// Of a target that moves no byte, written as `outputs` and opened again as `result`: every tile is
// the item that it was, and what is certified of it.
Result<Certificate> certify_in_place(const TargetState& all, const TargetRun& run,
                                     const Outputs& outputs, const Checkpoint& result,
                                     WritableDirectory& files, Progress* progress);

// All that is decided before anything is written.
struct PreparedRun {
  FolderRun run;
  std::vector<std::string> neighbours = {};  // files that do not come along, for people
};
Result<PreparedRun> prepare_run(const TargetState& all, const TargetRun& wanted,
                                Progress* progress);

Result<RepairResult> make_target(Store& store, const TargetState& all, const TargetRun& run,
                                 Progress* progress);

}  // namespace shw
