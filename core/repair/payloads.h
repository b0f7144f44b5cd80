// The payloads of a plan's new chunks, as the writers of formats take them: the plan lowered to a
// program, which is proved before anything is written and run where a writer asks for a payload.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/parallel.h"
#include "core/exec/write_output.h"
#include "core/repair/plan_types.h"

namespace shw {

// A new chunk, by index in plan.tensors and in its chunks, and where a writer puts its payload.
using NewChunk = std::pair<std::size_t, std::size_t>;
struct PayloadPlace {
  NewChunk chunk;
  std::string file;
  std::uint64_t offset = 0;  // of the payload
};

struct LoweredPlan {
  Program program;                        // canonical and proved
  std::vector<const Checkpoint*> inputs;  // of its sources; 0 is the one that is repaired
  std::map<NewChunk, OutputId> outputs;
};
// Refers to the checkpoint, and to those that the plan fills from.
Result<LoweredPlan> lower_to_program(const Checkpoint& checkpoint, const Plan& plan,
                                     std::span<const PayloadPlace> places);

class Payloads {
 public:
  Payloads(LoweredPlan lowered, Progress* progress);
  Payloads(const Payloads&) = delete;
  Payloads& operator=(const Payloads&) = delete;

  const Program& program() const { return lowered_.program; }
  // Into its file, where the program says; returns the CRC-32. From several threads at once.
  Result<std::uint32_t> write(NewChunk chunk, OutputFile& file);

 private:
  LoweredPlan lowered_;
  Pool<Workspace> workspaces_;
  Progress* progress_;
};

}  // namespace shw
