// Describes tensors that have the content of another tensor of the reference.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/maps/mistake.h"

namespace shw {

struct MovedTensor {
  std::size_t difference = 0;  // the caller's number for it
  std::string fqn, of;         // `fqn` has the content of `of`
  bool is_copy = false;        // `of` has it as well
};

// Mistakes by number. Layers or experts that changed places are described together: off by one,
// swapped, or in another order.
std::map<std::size_t, Mistake> moved_tensor_mistakes(const std::vector<MovedTensor>& moved);

}  // namespace shw
