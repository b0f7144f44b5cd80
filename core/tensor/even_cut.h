// The split of a dimension by torch.chunk.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/checked.h"

namespace shw {

// Part `index` of `extent` split into `parts`; empty parts begin at `extent` (torch >= 2.8).
struct EvenCut {
  std::int64_t offset = 0, size = 0;
};
inline EvenCut even_cut(std::int64_t extent, std::int64_t parts, std::int64_t index) {
  // Rounds up without an intermediate sum that could overflow.
  const std::int64_t step = extent / parts + (extent % parts != 0 ? 1 : 0);
  const auto start = checked_mul(step, index);
  if (!start || *start >= extent) return {extent, 0};
  return {*start, std::min(step, extent - *start)};
}

}  // namespace shw
