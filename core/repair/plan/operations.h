// Text of a plan: its operations with numbers, grouped by the finding that asks for them.
#pragma once

#include <vector>

#include "core/repair/plan/plan_types.h"
#include "core/rules/check.h"

namespace shw {

// Appends the operations for the tensors (indices into plan.tensors) that `finding` led to.
void describe_operations(const Checkpoint& checkpoint, const Finding& finding,
                         const std::vector<std::size_t>& tensors, Plan& plan);
// Describes the operations of an edited plan again if they do not match its tensors or their
// numbers.
void redescribe_operations(const Checkpoint& checkpoint, Plan& plan);
// True if writing the checkpoint again repairs the finding, without changing a tensor.
bool is_repaired_by_rewriting(const Finding& finding);
// True if the plan changes more than the form of `.metadata`, which older versions do not read.
bool repairs_anything(const Plan& plan);
// Appends the operations that repair an index of safetensors files, and files with bytes that
// belong to no tensor.
void describe_new_index(const CheckReport& report, Plan& plan);
// Appends the operation that rewrites `.metadata`: changes for portability, and attributes that are
// not kept.
void describe_rewrite(const Checkpoint& checkpoint, const CheckReport& report, Plan& plan);

}  // namespace shw
