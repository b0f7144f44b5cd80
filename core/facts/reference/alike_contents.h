// Finds tensors of equal contents within one checkpoint, for formats without
// checksums.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/facts/check_input.h"

namespace shw {

// A text per tensor that is equal for equal contents, for tensors whose begin equals that of
// another one of the same dtype and shape. Of all others only 4 KiB are read. The ranks of a team
// share the reads.
Result<std::map<TensorId, std::string>> hash_similar_tensors(const CheckInput& input,
                                                             const std::vector<TensorId>& tensors);

// Two equal parts of one tensor.
struct EqualParts {
  std::int64_t first = 0, second = 0;  // first < second
};
using EqualPartsOfEach = std::vector<std::vector<EqualParts>>;
// For each of `tensors`: slices along dim 0 that equal an earlier slice and hold at least
// kMaxValues distinct values. Of all others 4 KiB are read. Slices that cannot be read are skipped.
// The ranks of a team share the reads.
Result<EqualPartsOfEach> find_equal_slices(const CheckInput& input,
                                           const std::vector<TensorId>& tensors);
// For each of `tensors`: chunks that equal an adjacent chunk, by index in the tensor; chunks that
// repeat one row are skipped.
Result<EqualPartsOfEach> find_equal_tiles(const CheckInput& input,
                                          const std::vector<TensorId>& tensors);

}  // namespace shw
