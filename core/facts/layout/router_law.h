// What a router says about the experts beside it, where no spec does (spec/failures.md 5.c).
#pragma once

#include "core/facts/layout/derived_layout.h"

namespace shw {

// A router of E rows chooses among E experts. Keys that count the experts of one rank stack those
// of all ranks, so keys x stacked experts must be E; a divisor of E says that an axis was left out
// at save, and how large it is. Where the order of the stacked rows is in no doubt and the writers
// agree, that is a layout; otherwise it is told, with what would decide it.
void derive_by_router(const CheckInput& input, DerivedLayouts& out);

// Layers whose second matrices are not there, or of other sizes, so that the law cannot count how
// many experts a key stacks; keys of one rank's experts alone.
struct UncountedExperts {
  std::vector<TensorId> tensors;
  std::int64_t keys = 0, routed = 0;
};
std::vector<UncountedExperts> uncounted_experts(const CheckInput& input);

}  // namespace shw
