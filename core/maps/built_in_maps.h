// The maps that come with the program.
#pragma once

#include <vector>

#include "core/maps/model_map.h"

namespace shw {

// Those inside the program. Each is read when it is first asked for.
const std::vector<ModelMap>& built_in_maps();
// A file, or the name of a map that comes with the program.
Result<ModelMap> map_named(const std::string& name);

}  // namespace shw
