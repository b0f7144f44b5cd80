// Translates a bound map into steps of a plan; the only code that knows both.
#pragma once

#include <vector>

#include "core/maps/bind_map.h"
#include "core/transform/steps.h"

namespace shw {

// `objects`: non-tensor entries, which the steps drop because the other side has no place for them.
// `first`: number of the first intermediate name.
std::vector<Step> steps_of(const BoundMap& bound, const std::vector<std::string>& objects,
                           std::size_t first = 0);
// The tensors that result from the steps.
std::vector<MapTensor> tensors_after(const BoundMap& bound);

}  // namespace shw
