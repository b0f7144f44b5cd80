// Proves what a repair wrote against its source, and writes the certificate beside it.
#pragma once

#include <map>
#include <utility>

#include "core/base/progress.h"
#include "core/exec/folder_run.h"
#include "core/repair/plan_types.h"

namespace shw {

// A new chunk, by index in plan.tensors and in its chunks: which of WrittenFolder::made it is.
using MadeChunks = std::map<std::pair<std::size_t, std::size_t>, std::size_t>;

// True where nothing is lost; an error where what was written is not what was planned.
// `kept_plan`: Certificate::plan.
Result<bool> prove_result(const Checkpoint& source, const Plan& plan, const std::string& kept_plan,
                          const WrittenFolder& written, const MadeChunks& made, Progress* progress);

// Entries that are no tensors are as planned.
Status compare_repaired_objects(const Checkpoint& source, const Plan& plan,
                                const Checkpoint& result);

}  // namespace shw
