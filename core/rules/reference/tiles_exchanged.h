// Reports displaced chunks. Found by blocks_permuted.cpp, which reads both checkpoints once for
// three rules.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/facts/facts.h"
#include "core/facts/reference/tile_places.h"

namespace shw {

struct MovedTiles {
  TensorId tensor{};
  Extents expected;  // shape in the reference
  TilePlaces places;
};

// For kExchanged, and where correlation finds the places: one finding per pattern, with a relabel.
// `right`: tensors that equal the reference.
void report_exchanged(const Facts& facts, const std::vector<MovedTiles>& tensors,
                      const std::set<TensorId>& right, std::vector<Finding>& findings);
// For kPartly: known displacements, without remedy.
void report_partly(const Facts& facts, const std::vector<MovedTiles>& tensors,
                   std::vector<Finding>& findings);

}  // namespace shw
