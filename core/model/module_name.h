// The module part of a tensor's FQN.
#pragma once

#include <cstddef>
#include <string_view>

namespace shw {

// Length of the module part: that of "layers.3.mlp" in "layers.3.mlp.down_proj.weight"; 0 without
// module.
inline std::size_t module_length(std::string_view fqn) {
  const std::size_t last = fqn.rfind('.');
  if (last == fqn.npos || last == 0) return 0;
  const std::size_t before = fqn.rfind('.', last - 1);
  return before == fqn.npos ? 0 : before;
}

}  // namespace shw
