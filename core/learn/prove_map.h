// Applies a learned map to one checkpoint and holds every element of what it makes against the
// other. What hashes found is a candidate until then.
#pragma once

#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/maps/bind_map.h"
#include "core/model/checkpoint.h"

namespace shw {

enum class ProvedTensor : std::uint8_t {
  kNotMade,       // the map makes no such tensor, or another shape
  kEqual,         // every element
  kEqualButPads,  // every element but those that pad it, which come from nowhere
  // Elements are widened, and equal once both are rounded to what the source has: it holds more.
  kEqualRounded,
  kDiffers,
};

struct MapProof {
  std::vector<ProvedTensor> tensors;  // by tensor of the checkpoint that is made
  std::vector<std::string> surplus;   // names that the map makes and that it does not have
};

// An error where the map does not fit the source, or on cancellation.
Result<MapProof> prove_map(const ModelMap& map, MapWay way,
                           const std::shared_ptr<const Checkpoint>& source, const Checkpoint& made,
                           Progress* progress);

}  // namespace shw
