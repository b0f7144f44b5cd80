// The map between two checkpoints of different programs, and how each of them fits it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/maps/choose_map.h"
#include "core/model/checkpoint.h"

namespace shw {

// The map, and whether the first checkpoint is in its world `from`; null if both are in one world.
struct MapOfPair {
  const ModelMap* map = nullptr;
  bool is_first_from = true;
};
// `map` null: a built-in one, chosen by names.
Result<MapOfPair> map_of_pair(const std::vector<MapTensor>& first,
                              const std::vector<MapTensor>& second, const ModelMap* map,
                              const ModelFacts& facts);

// Facts from the user, plus the forms and the padding of `other`, which is in the map's world `to`.
// `shapes` are those of the checkpoint in world `from`.
ModelFacts facts_from_other_side(const ModelMap& map, const std::vector<MapTensor>& shapes,
                                 const Checkpoint& other, const BoundMap& of_other,
                                 const ModelFacts& facts);

// Maps the names that a map reads to the saved names.
std::map<std::string, std::string> saved_names(const Checkpoint& checkpoint, const BoundMap& bound);
std::string without_written_prefix(const ModelMap& map, const std::string& name);

}  // namespace shw
