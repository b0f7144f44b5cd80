// One weight that several tensors make together.
#pragma once

#include <string>
#include <vector>

#include "core/model/checkpoint.h"

namespace shw {

struct QuantisedWeight {
  std::string scheme;             // "FP8"
  std::string name;               // without the endings of its parts
  std::vector<TensorId> tensors;  // the stored weight first
};

}  // namespace shw
