// A folded map with the rows that it was learned from.
#pragma once

#include <vector>

#include "core/maps/model_map.h"

namespace shw {

struct FoldedMap {
  ModelMap map;
  // By row of the map: indices of its rows in LearnedRows.
  std::vector<std::vector<std::size_t>> learned;
  // Indices of LearnedRows that no pattern expresses: layers or experts in another order.
  std::vector<std::size_t> inexpressible_rows;
};

}  // namespace shw
