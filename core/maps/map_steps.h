// The rows of a bound map as steps of a plan: the one place where maps meet the grammar of steps.
#pragma once

#include <vector>

#include "core/maps/bind_map.h"
#include "core/transform/steps.h"

namespace shw {

// `objects`: entries that are not tensors; none of them has a place on the other side.
// `first`: the number that the first name between two steps gets.
std::vector<Step> steps_of(const BoundMap& bound, const std::vector<std::string>& objects,
                           std::size_t first = 0);
// The tensors that the steps make.
std::vector<MapTensor> tensors_after(const BoundMap& bound);

}  // namespace shw
