// Where the part in a file of nanotron lies in the whole tensor.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/tensor/shape.h"

namespace shw {

// "(8, 6)"; nothing where it is not a tuple of sizes.
std::optional<Extents> nanotron_shape(std::string_view text);
// The boxes of the whole that a part of `sizes` is made of, in its order along the axis that is
// cut. kDamaged, without a place, where the slices are not that.
Result<std::vector<Box>> nanotron_boxes(std::string_view pairs, const Extents& sizes,
                                        const Extents& whole);

}  // namespace shw
