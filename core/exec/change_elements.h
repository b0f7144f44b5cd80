// What becomes of elements that are cast or scaled on their way: a row of them. The one place that
// knows; who walks the rows (an executor, the proof of what it made) is somebody else each time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/program/tile_job.h"

namespace shw {

// `count` elements of a job that casts or scales, the next one a stride further; they may lie
// unaligned. Of `out_of_range`, a byte an element, those become 1 whose number is lost on the way
// because a dtype, or float32 after the factor, cannot say it; null: nobody asks.
void change_elements(const TileJob& job, const std::byte* in, std::int64_t in_stride,
                     std::byte* out, std::int64_t out_stride, std::int64_t count,
                     std::uint8_t* out_of_range = nullptr);

}  // namespace shw
