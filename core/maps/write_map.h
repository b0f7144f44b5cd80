// A map as the text of its file, one row per line, as model_map_from_json() reads it.
#pragma once

#include <string>

#include "core/maps/model_map.h"

namespace shw {

std::string map_to_json(const ModelMap& map);

}  // namespace shw
