// A quantised weight as the numbers that it stands for, made when they are asked for.
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
  // Rows along the first dimension that are made together: all of them where the weight is stored
  // the other way round.
  std::int64_t rows_at_once = 1;
  // Elements of rows [first, first + count), row-major.
  std::function<Result<std::vector<float>>(std::int64_t first, std::int64_t count)> decode;
  std::vector<TensorId> used;  // of the checkpoint: the weight and all that only it needs
};

}  // namespace shw
