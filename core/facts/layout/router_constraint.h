// Derives layouts of experts from the router of their layer, if no spec gives them.
#pragma once

#include "core/facts/layout/derived_layout.h"

namespace shw {

// A router with E rows selects among E experts. For keys that number one rank's experts and stack
// those of all ranks, keys * stacked experts must be E; a divisor of E means that an axis of that
// size was lost at save. If the order of the stacked rows is certain and the writers agree, this
// gives a layout; otherwise the finding says what would decide it.
void derive_by_router(const CheckInput& input, DerivedLayouts& out);

// Layers where the number of experts per key cannot be counted, because their second matrices are
// missing or of different sizes. Only for keys with one rank's experts.
struct UncountedExperts {
  std::vector<TensorId> tensors;
  std::int64_t keys = 0, routed = 0;
};
std::vector<UncountedExperts> uncounted_experts(const CheckInput& input);

}  // namespace shw
