// Which map is meant, and what it makes of a checkpoint: from its world to another one, through
// Hugging Face's names where no map joins the two directly.
#pragma once

#include <map>
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
  std::vector<std::string> left_entries;           // of the optimizer, which are not tensors
  std::vector<BoundMap> bound;                     // by map
  std::vector<BoundMap> of_states = {};            // by map and kind of optimizer state
  std::map<std::string, std::size_t> states = {};  // tensors that are made, by kind
  std::size_t made_masters = 0;                    // master weights that are copies of weights
};

// What does not go through a map.
struct LeaveOut {
  std::vector<std::string> patterns = {};  // shell patterns of names
  bool states = false;                     // optimizer states
};

std::vector<MapTensor> named_shapes(const Checkpoint& checkpoint);
// The world that most of the tensors have names of; empty where they have those of none.
std::string world_of(std::span<const MapTensor> tensors, const ModelFacts& facts);
// The worlds of the maps of this program.
std::vector<std::string> known_worlds();

// `map`: null: of this program's. `to`: a world; empty: the other side of the map. kUnsupported
// where tensors have no row that `leave_out` does not name.
Result<MappedSteps> mapped_steps(const Checkpoint& checkpoint, const ModelMap* map,
                                 const std::string& to, const ModelFacts& facts,
                                 const LeaveOut& leave_out);

}  // namespace shw
