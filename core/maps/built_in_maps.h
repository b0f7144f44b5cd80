// The maps that are part of Shardwright.
#pragma once

#include <vector>

#include "core/maps/model_map.h"

namespace shw {

// The built-in maps. Each is parsed on first use.
const std::vector<ModelMap>& built_in_maps();
// Reads a map file, or finds a built-in map by its name.
Result<ModelMap> map_named(const std::string& name);

}  // namespace shw
