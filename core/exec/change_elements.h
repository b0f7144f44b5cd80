// Converts rows of elements for jobs that cast or scale. Executors and the proof of their results
// both use this function.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/program/tile_job.h"

namespace shw {

// Converts `count` elements with strides in bytes; they may be unaligned. If `out_of_range` is not
// null, it holds one byte per element, set to 1 where the target dtype, or float32 after the scale,
// cannot represent the value.
void convert_elements(const TileJob& job, const std::byte* in, std::int64_t in_stride,
                      std::byte* out, std::int64_t out_stride, std::int64_t count,
                      std::uint8_t* out_of_range = nullptr);

}  // namespace shw
