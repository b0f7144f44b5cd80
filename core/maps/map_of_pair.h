// The map that joins two checkpoints of different programs, and how each of them fits it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/maps/choose_map.h"
#include "core/model/checkpoint.h"

namespace shw {

// The map between the two, and whether the first one is in its world `from`; null where both are of
// one world.
struct MapOfPair {
  const ModelMap* map = nullptr;
  bool is_first_from = true;
};
// `map`: null: one of this program's, by the names.
Result<MapOfPair> map_of_pair(const std::vector<MapTensor>& first,
                              const std::vector<MapTensor>& second, const ModelMap* map,
                              const ModelFacts& facts);

// What a person said, and the forms and the padding of `other`, which is in the map's world `to`.
// `shapes`: of the one in its world `from`.
ModelFacts facts_followed(const ModelMap& map, const std::vector<MapTensor>& shapes,
                          const Checkpoint& other, const BoundMap& of_other,
                          const ModelFacts& facts);

// Names as the map reads them, and as they are saved.
std::map<std::string, std::string> saved_names(const Checkpoint& checkpoint, const BoundMap& bound);
std::string without_written_prefix(const ModelMap& map, const std::string& name);

}  // namespace shw
