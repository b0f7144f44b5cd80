// The two moments of each parameter, paired.
#pragma once

#include <string>
#include <vector>

#include "core/facts/check_input.h"

namespace shw {

struct MomentPair {
  std::string prefix;  // prefix of the optimizer: "optimizer."
  std::string key;     // parameter name without wrappers
  TensorId mean{}, square{};
};

// Pairs with equal shapes, by optimizer and parameter.
std::vector<MomentPair> moment_pairs(const CheckInput& input);

}  // namespace shw
