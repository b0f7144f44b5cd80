// Findings of tiles that lie where others belong; what finds them is in blocks_permuted.cpp, which
// reads both checkpoints once for three rules.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/facts/facts.h"
#include "core/facts/reference/tile_places.h"

namespace shw {

struct MovedTiles {
  TensorId tensor{};
  Extents expected;  // the reference's shape
  TilePlaces places;
};

// All of kExchanged, or all of which likeness says how they lie: one finding for each pattern, with
// a relabel. `right` hold the reference's values.
void report_exchanged(const Facts& facts, const std::vector<MovedTiles>& tensors,
                      const std::set<TensorId>& right, std::vector<Finding>& findings);
// All of kPartly: what is known, and no remedy.
void report_partly(const Facts& facts, const std::vector<MovedTiles>& tensors,
                   std::vector<Finding>& findings);

}  // namespace shw
