// The steps of carrying a plan out. What they write, and what they read of it, goes through a
// Store: tests put one underneath that fails or forgets.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/io/store.h"
#include "core/repair/plan/plan_types.h"
#include "core/repair/run/repair_result.h"

namespace shw {

// Into options.out.
Result<RepairResult> repair_into_new_directory(Store& store, const Checkpoint& checkpoint,
                                               const Plan& plan, const ApplyOptions& options,
                                               Progress* progress);
Result<RepairResult> repair_in_place(Store& store, const Checkpoint& checkpoint, const Plan& plan,
                                     Progress* progress);

// Half-made directories are "<out>.shardwright-partial-<pid>" (kPartialMark); every name of ours in
// a directory that is repaired in place holds ".shardwright-" too.
inline constexpr const char* kOurMark = ".shardwright-";
inline constexpr const char* kMetadataFile = ".metadata";

// The plan as the format can hold it: a plain safetensors file holds a tensor in one piece.
Plan adapt_plan_to_format(const Checkpoint& checkpoint, Plan plan);
// The same without a copy where it can hold it as it is: of millions of chunks one takes half a
// gigabyte. `changed` outlives what is returned.
const Plan& adapt_plan_to_format(const Checkpoint& checkpoint, const Plan& plan,
                                 std::optional<Plan>& changed);
// What was written says what was planned, tensor by tensor and tile by tile.
Status compare_metadata(const Checkpoint& checkpoint, const Plan& plan, const Checkpoint& result);

}  // namespace shw
