// Proves what a repair wrote against its source, and writes the certificate beside it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/base/progress.h"
#include "core/exec/folder_run.h"
#include "core/repair/plan_types.h"

namespace shw {

// A new chunk, by index in plan.tensors and in its chunks: which of WrittenFolder::made it is.
using MadeChunks = std::map<std::pair<std::size_t, std::size_t>, std::size_t>;

// What goes with the result.
struct BesideProof {
  std::string plan = {};   // Certificate::plan
  bool integrity = false;  // ApplyOptions::integrity
};

// True where nothing is lost; an error where what was written is not what was planned.
Result<bool> prove_result(const Checkpoint& source, const Plan& plan, const BesideProof& beside,
                          const WrittenFolder& written, const MadeChunks& made, Progress* progress);

// An entry that is no tensor and is not as planned; an error where that cannot be told.
Result<std::optional<Error>> object_that_differs(const Checkpoint& source, const Plan& plan,
                                                 const Checkpoint& result);

}  // namespace shw
