// What becomes of elements that are cast or scaled on their way: a row of them. The one place that
// knows; who walks the rows (an executor, the proof of what it made) is somebody else each time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/program/tile_job.h"

namespace shw {

// `count` elements of a job that casts or scales, the next one a stride further; they may lie
// unaligned.
void change_elements(const TileJob& job, const std::byte* in, std::int64_t in_stride,
                     std::byte* out, std::int64_t out_stride, std::int64_t count);

}  // namespace shw
