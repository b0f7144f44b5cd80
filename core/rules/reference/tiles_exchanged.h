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
// `right`: tensors that equal the reference. `offers`: false leaves the remedy out.
void report_exchanged(const Facts& facts, const std::vector<MovedTiles>& tensors,
                      const std::set<TensorId>& right, std::vector<Finding>& findings,
                      bool offers = true);

// Text: why correlation does not justify a repair if the reference is of the same step, where
// differing values are not training progress.
inline constexpr const char* kCorrelationIsNoProof =
    " Most other tensors equal the reference's, so it is the same step: an order that only "
    "correlation shows is not repaired.";
// For kPartly: known displacements, without remedy.
void report_known_displacements(const Facts& facts, const std::vector<MovedTiles>& tensors,
                                std::vector<Finding>& findings);

}  // namespace shw
