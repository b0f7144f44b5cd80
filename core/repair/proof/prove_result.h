// Proves what a repair wrote against its source, and writes the certificate beside it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/exec/folder_run.h"
#include "core/repair/plan/plan_types.h"
#include "core/repair/run/repair_result.h"

namespace shw {

// Of a new chunk, by index in plan.tensors and in its chunks, which of WrittenFolder::made it is.
class MadeChunks {
 public:
  explicit MadeChunks(const Plan& plan);
  void add(std::size_t tensor, std::size_t chunk, std::size_t made);
  std::optional<std::size_t> find(std::size_t tensor, std::size_t chunk) const;

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;
  std::vector<std::size_t> first_;   // by tensor, in made_
  std::vector<std::uint32_t> made_;  // empty where nothing is made
};

// What goes with the result.
struct ProofExtras {
  std::string plan = {};   // Certificate::plan
  bool integrity = false;  // ApplyOptions::integrity
};

// True where nothing is lost; what else there is to tell goes to `told`. An error where what was
// written is not what was planned.
Result<bool> prove_result(const Checkpoint& source, const Plan& plan, const ProofExtras& extras,
                          const WrittenFolder& written, const MadeChunks& made, RepairResult& told,
                          Progress* progress);

// An entry that is no tensor and is not as planned; an error where that cannot be told.
Result<std::optional<Error>> object_that_differs(const Checkpoint& source, const Plan& plan,
                                                 const Checkpoint& result);

}  // namespace shw
