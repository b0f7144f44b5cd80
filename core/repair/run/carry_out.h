// A repair in place, and names that repairs leave. What is written, and what is read of it, goes
// through a Store: tests put one underneath that fails or forgets.
#pragma once

#include "core/io/store.h"
#include "core/repair/plan/plan_types.h"
#include "core/repair/run/repair_result.h"

namespace shw {

Result<RepairResult> repair_in_place(Store& store, const Checkpoint& checkpoint, const Plan& plan,
                                     Progress* progress);

// Half-made directories are "<out>.shardwright-partial-<pid>" (kPartialMark); every name of ours in
// a directory that is repaired in place holds ".shardwright-" too.
inline constexpr const char* kOurMark = ".shardwright-";
inline constexpr const char* kMetadataFile = ".metadata";

}  // namespace shw
