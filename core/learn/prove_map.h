// Applies a learned map to one checkpoint and compares every element with the other. Matches from
// hashes are only candidates before that.
#pragma once

#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/maps/bind_map.h"
#include "core/model/checkpoint.h"

namespace shw {

enum class ProvedTensor : std::uint8_t {
  kNotMade,       // the map makes no such tensor, or makes it with another shape
  kEqual,         // every element
  kEqualButPads,  // every element except padding, which has no origin
  // Elements were widened and are equal after rounding to the source's dtype.
  kEqualRounded,
  kDiffers,
};

struct MapProof {
  std::vector<ProvedTensor> tensors;            // by tensor of `made`
  std::vector<std::string> unexpected_results;  // FQNs that the map makes but `made` lacks
};

// An error if the map does not fit the source, or if cancelled.
Result<MapProof> prove_map(const ModelMap& map, MapDirection way,
                           const std::shared_ptr<const Checkpoint>& source, const Checkpoint& made,
                           Progress* progress);

}  // namespace shw
