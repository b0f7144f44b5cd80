// A size in config.json that tensors contradict.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/ids.h"

namespace shw {

// Extents that contradict a key or a product of keys.
struct SizeContradiction {
  std::string words;              // "num_key_value_heads 2 x head_dim 8 = 16"
  std::vector<std::string> keys;  // "num_key_value_heads", "head_dim"
  std::int64_t said = 0;
  struct Contradicting {
    TensorId tensor{};
    std::size_t axis = 0;
  };
  std::vector<Contradicting> tensors;  // not empty
  std::size_t agreeing = 0;            // number of tensors that agree
  bool only_more_rows = false;         // a vocabulary that is only too large: may be padding
};

}  // namespace shw
