// Which tensor is which of the reference's where training went on since that was saved: as
// core/facts/reference/tile_likeness.h, of whole tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/facts/check_input.h"
#include "core/facts/reference/tile_likeness.h"

namespace shw {

// Of tensors of one shape: `there` are the counterparts of `here`, one by one. Of each the leading
// elements are held against all, and parts of the rest against the one that was found. Nothing
// where they are not all of one shape and of floats, or cannot all be read.
std::optional<LikeOrder> order_by_likeness(const CheckInput& input,
                                           const std::vector<TensorId>& here,
                                           const std::vector<TensorId>& there);

// What that reads at most, and holds, of so many tensors of each side.
std::uint64_t bytes_to_liken(std::size_t tensors);

}  // namespace shw
