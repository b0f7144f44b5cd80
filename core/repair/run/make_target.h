// Writes a target into a new folder and proves it: every written element is read back and compared
// with its origin.
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

// Certifies an in-place target, which moves no bytes: `outputs` is its layout, `result` the
// reopened checkpoint. Proves that every tile still has its item.
Result<Certificate> certify_in_place(const TargetState& all, const TargetRun& run,
                                     const Outputs& outputs, const Checkpoint& result,
                                     WritableDirectory& files, Progress* progress);

// All decisions of a run, made before anything is written.
struct PreparedRun {
  FolderRun run;
  std::vector<std::string> neighbours = {};  // paths that are not copied, for messages
};
Result<PreparedRun> prepare_run(const TargetState& all, const TargetRun& wanted,
                                Progress* progress);

Result<RepairResult> make_target(Store& store, const TargetState& all, const TargetRun& run,
                                 Progress* progress);

}  // namespace shw
