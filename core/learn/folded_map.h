// A map with what its rows were learned from.
#pragma once

#include <vector>

#include "core/maps/model_map.h"

namespace shw {

struct FoldedMap {
  ModelMap map;
  // By row of the map, in its order: the rows of LearnedRows that it stands for.
  std::vector<std::vector<std::size_t>> learned;
  // Rows of LearnedRows that no pattern says: layers or experts in another order.
  std::vector<std::size_t> not_said;
};

}  // namespace shw
