// Finds tensors that repeat one part along their first dimension.
#pragma once

#include <cstdint>
#include <vector>

#include "core/facts/check_input.h"

namespace shw {

struct RepeatQuery {
  TensorId tensor{};
  std::int64_t rows = 0;  // rows per part if known; 0: any
};
struct RepeatedParts {
  std::int64_t parts = 0;  // 0: not repeated
  std::int64_t rows = 0;   // per part
  bool tells = false;      // a part has more than a few distinct values
};
// One answer per tensor. Only a few KiB are read of tensors that do not repeat.
Result<std::vector<RepeatedParts>> find_repeated_parts(const CheckInput& input,
                                                       const std::vector<RepeatQuery>& asked);

}  // namespace shw
