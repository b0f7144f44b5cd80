// Elements of a tensor whose value its own tiles leave open: two tiles have them, or a tile reaches
// outside the tensor, so that its box or the shape is wrong. A repair copies them, but may not
// certify them as kept.
#pragma once

#include <string>
#include <vector>

#include "core/model/checkpoint.h"
#include "core/repair/proof/digests.h"

namespace shw {

struct AmbiguousElements {
  std::vector<Box> boxes;       // inside the tensor, may overlap; none for a tile that is outside
  std::string by_two, outside;  // text about the first of each kind; empty: there is none
  std::string why() const { return by_two.empty() ? outside : by_two; }
};

// `hashes` of the items, by chunk. Tiles with the same box and equal items are not ambiguous.
AmbiguousElements ambiguous_elements_of(const Checkpoint& checkpoint, TensorId tensor,
                                        const ItemHashes& hashes);

}  // namespace shw
