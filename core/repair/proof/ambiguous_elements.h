// Elements of a tensor of which its own tiles do not say what they are: two tiles hold them, or a
// tile does not lie in the tensor, so that its place or the shape is wrong. They come along as they
// are, and nobody may say that they were kept.
#pragma once

#include <string>
#include <vector>

#include "core/model/checkpoint.h"
#include "core/repair/proof/digests.h"

namespace shw {

struct Contested {
  std::vector<Box> boxes;       // inside the tensor; may meet. A tile that lies outside has none
  std::string by_two, outside;  // the first of each kind, in words; empty: there is none
  std::string why() const { return by_two.empty() ? outside : by_two; }
};

// `hashes`: of the items, by chunk. Tiles of one box whose items are equal contest nothing.
Contested contested_in(const Checkpoint& checkpoint, TensorId tensor, const ItemHashes& hashes);

}  // namespace shw
