// The words of a plan: its operations, grouped by the finding that asks for them, with numbers.
#pragma once

#include <vector>

#include "core/repair/plan/plan_types.h"
#include "core/rules/check.h"

namespace shw {

// Appends the operations for the tensors (indices into plan.tensors) that `finding` led to.
void describe_operations(const Checkpoint& checkpoint, const Finding& finding,
                         const std::vector<std::size_t>& tensors, Plan& plan);
// Of a plan that a person has edited: where its operations do not speak of its tensors, or not in
// their numbers, they are told anew.
void describe_again(const Checkpoint& checkpoint, Plan& plan);
// Of what a writer of the format puts right by itself, in every repair: no tensor changes.
bool is_mended_by_writing(const Finding& finding);
// Appends what mends an index of safetensors files, and files with bytes of no tensor.
void describe_new_index(const CheckReport& report, Plan& plan);
// Appends what happens to `.metadata` itself: what portability asks for, and what is not carried
// over.
void describe_rewrite(const Checkpoint& checkpoint, const CheckReport& report, Plan& plan);

}  // namespace shw
