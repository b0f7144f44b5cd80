// Which map is meant, and what it makes of a checkpoint: from its world to another one, through
// Hugging Face's names where no map joins the two directly.
#pragma once

#include <string>
#include <vector>

#include "core/maps/bind_map.h"
#include "core/transform/steps.h"

namespace shw {

struct MappedSteps {
  std::vector<Step> steps;
  std::vector<MapTensor> tensors;  // that they make
  std::string from, to;            // worlds
  std::vector<std::string> maps;   // by name, in their order
  std::vector<std::string> left_out;
  std::vector<BoundMap> bound;  // by map
};

std::vector<MapTensor> named_shapes(const Checkpoint& checkpoint);
// The world that most of the tensors have names of; empty where they have those of none.
std::string world_of(std::span<const MapTensor> tensors, const ModelFacts& facts);
// The worlds of the maps of this program.
std::vector<std::string> known_worlds();

// `map`: null: of this program's. `to`: a world; empty: the other side of the map. kUnsupported
// where tensors have no row; `leave_out`: shell patterns of those that may.
Result<MappedSteps> mapped_steps(const Checkpoint& checkpoint, const ModelMap* map,
                                 const std::string& to, const ModelFacts& facts,
                                 const std::vector<std::string>& leave_out);

}  // namespace shw
