// A quantised weight that is decoded to numbers on request.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/model/checkpoint.h"

namespace shw {

struct DecodedWeight {
  std::string fqn;
  Extents shape;
  // Number of rows (first dimension) that are decoded together: all of them if the weight is stored
  // transposed.
  std::int64_t rows_at_once = 1;
  // Returns the elements of rows [first, first + count), row-major.
  std::function<Result<std::vector<float>>(std::int64_t first, std::int64_t count)> decode;
  // The tensors that the decoded weight replaces: the weight and its companions.
  std::vector<TensorId> used;
  // Reads the companions whose values decide whether `decode` succeeds. Null if none do.
  std::function<Status()> check_values = nullptr;
};

}  // namespace shw
