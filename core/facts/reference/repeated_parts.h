// A tensor that is the same part several times, one behind the other along its first dimension.
#pragma once

#include <cstdint>
#include <vector>

#include "core/facts/check_input.h"

namespace shw {

struct AskedRepeats {
  TensorId tensor{};
  std::int64_t rows = 0;  // of one part, where it is known; 0: any
};
struct RepeatedParts {
  std::int64_t parts = 0;  // 0: it does not repeat itself
  std::int64_t rows = 0;   // of one part
  bool tells = false;      // a part holds more than a few different values
};
// One answer for each. Of those that do not repeat themselves a few KiB are read.
Result<std::vector<RepeatedParts>> find_repeated_parts(const CheckInput& input,
                                                       const std::vector<AskedRepeats>& asked);

}  // namespace shw
