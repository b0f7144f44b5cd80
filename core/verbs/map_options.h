// What a person says of the map between the names of two programs.
#pragma once

#include <string>
#include <vector>

#include "core/maps/choose_map.h"

namespace shw::verbs {

struct MapOptions {
  std::string map = {};               // --map FILE, or the name of one of the program's maps
  std::vector<std::string> set = {};  // --set NAME=VALUE: values of the map
  std::string config = {};            // --config FOLDER: with the model's config.json
};

// Adds what --config and --set say; --config replaces what lies beside the checkpoint.
Status add_map_options(const MapOptions& mapping, ModelFacts& facts);

}  // namespace shw::verbs
