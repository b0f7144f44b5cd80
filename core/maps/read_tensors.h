// Tensors with the names by which a map reads them: without what wrappers such as torch.compile
// add, and without a prefix.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/maps/bound_map.h"
#include "core/maps/counter_pattern.h"

namespace shw {

struct ReadTensors {
  std::vector<MapTensor> tensors;
  NumberedNames names;                                             // by index in `tensors`
  std::vector<std::pair<std::string, std::string>> stripped = {};  // saved name, and name as read
};
ReadTensors read_tensors(std::span<const MapTensor> tensors, const std::string& prefix);

// The name without what wrappers add.
std::string map_input_name(std::string name);

}  // namespace shw
