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

// Two parts of one tensor that hold the same.
struct EqualParts {
  std::int64_t first = 0, second = 0;  // the second lies behind
};
using EqualPartsOfEach = std::vector<std::vector<EqualParts>>;
// Of each of `tensors`: the slices along dim 0 that hold what an earlier one holds, if that is at
// least kMaxValues different numbers. Of all others 4 KiB are read. Slices that cannot be read say
// nothing. Read once by those who look.
Result<EqualPartsOfEach> equal_slices_of(const CheckInput& input,
                                         const std::vector<TensorId>& tensors);
// The same of tiles, by their places among the tensor's chunks: those that lie beside each other,
// and are no row that repeats itself.
Result<EqualPartsOfEach> equal_tiles_of(const CheckInput& input,
                                        const std::vector<TensorId>& tensors);

}  // namespace shw
