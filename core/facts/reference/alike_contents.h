// Tensors of one checkpoint that hold the same, where the file format keeps no checksums that would
// say so.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/facts/check_input.h"

namespace shw {

// What each of those holds that begins as another one of its dtype and shape does: equal texts for
// equal elements. Of all others 4 KiB are read and nothing is said. Read once by those who look.
Result<std::map<TensorId, std::string>> contents_of_alike(const CheckInput& input,
                                                          const std::vector<TensorId>& tensors);

// Slices along dim 0 of one tensor that hold the same: `second` is the later one.
struct EqualSlices {
  std::int64_t first = 0, second = 0;
};
// Of each of `tensors`: the slices that hold what an earlier one holds, if that is at least
// kMaxValues different numbers. Of all others 4 KiB are read. Slices that cannot be read say
// nothing. Read once by those who look.
Result<std::vector<std::vector<EqualSlices>>> equal_slices_of(const CheckInput& input,
                                                              const std::vector<TensorId>& tensors);

}  // namespace shw
