// Names of files that repairs create. All reads and writes of a repair go through a Store, so that
// tests can make it fail or lose writes.
#pragma once

#include "core/io/store.h"
#include "core/repair/plan/plan_types.h"
#include "core/repair/run/repair_result.h"

namespace shw {

Result<RepairResult> repair_in_place(Store& store, const Checkpoint& checkpoint, const Plan& plan,
                                     Progress* progress);

// Unfinished directories are "<out>.shardwright-partial-<pid>" (kPartialMark). In a directory that
// is repaired in place, our files have ".shardwright-" in their names too.
inline constexpr const char* kOwnFileMarker = ".shardwright-";
inline constexpr const char* kMetadataFile = ".metadata";

}  // namespace shw
