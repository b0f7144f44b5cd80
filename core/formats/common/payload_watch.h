// Looks at a payload's bytes while somebody else reads them.
#pragma once

#include <cstdint>

#include "core/tensor/float_counts.h"

namespace shw {

struct PayloadWatch {
  std::uint64_t offset = 0, length = 0;  // of the payload, in the source
  FloatCounter counter;
  bool seen = false;  // all of it
};

}  // namespace shw
