// A plan's new chunks as a program: every byte that will be made has its place and its origin, and
// that is proved, before the first one is.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/program/program.h"
#include "core/repair/plan/plan_types.h"

namespace shw {

// A new chunk, and where a writer puts its payload.
struct PayloadPlace {
  std::size_t tensor = 0, chunk = 0;  // by index in plan.tensors and in its chunks
  std::string_view file;
  std::uint64_t offset = 0;  // of the payload
};

struct LoweredPlan {
  Program program;                        // canonical and proved
  std::vector<const Checkpoint*> inputs;  // of its sources; 0 is the one that is repaired
  std::vector<OutputId> outputs;          // by place
};
// Refers to the checkpoint, and to those that the plan fills from.
Result<LoweredPlan> lower_to_program(const Checkpoint& checkpoint, const Plan& plan,
                                     std::span<const PayloadPlace> places);

}  // namespace shw
