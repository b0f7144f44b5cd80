// The two moments of each parameter, side by side.
#pragma once

#include <string>
#include <vector>

#include "core/facts/check_input.h"

namespace shw {

struct MomentPair {
  std::string prefix;  // of the optimizer: "optimizer."
  std::string key;     // of the parameter, bare
  TensorId mean{}, square{};
};

// Where both are there with one shape; by optimizer and parameter.
std::vector<MomentPair> moment_pairs(const CheckInput& input);

}  // namespace shw
