// Parses where the part in a nanotron file is in the whole tensor.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/tensor/shape.h"

namespace shw {

// Parses "(8, 6)"; nullopt if it is not a tuple of sizes.
std::optional<Extents> nanotron_shape(std::string_view text);
// The boxes of the whole tensor that form a part of `sizes`, in their order along the split axis.
// kDamaged, without a place, if the slices do not form such a part.
Result<std::vector<Box>> nanotron_boxes(std::string_view pairs, const Extents& sizes,
                                        const Extents& whole);

}  // namespace shw
