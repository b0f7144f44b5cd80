// Options for the map between the names of two programs.
#pragma once

#include <string>
#include <vector>

#include "core/maps/choose_map.h"

namespace shw::verbs {

inline constexpr const char* kTrainerOptimizer = "optimizer";  // of --to: for Trainer

struct MapOptions {
  std::string map = {};               // --map FILE, or the name of a built-in map
  std::vector<std::string> set = {};  // --set NAME=VALUE: values of the map
  std::string config = {};            // --config FOLDER that has the model's config.json
  std::string order = {};             // --order FILE: names of parameters in the model's order
};

// Adds --config and --set; --config replaces the config.json next to the checkpoint.
Status add_map_options(const MapOptions& mapping, ModelFacts& facts);

}  // namespace shw::verbs
