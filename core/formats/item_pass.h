// All that a proof asks of an item, in one pass over its bytes.
#pragma once

#include <string>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/model/checkpoint.h"
#include "core/tensor/fingerprint.h"

namespace shw {

struct ItemPass {
  std::string hash;      // XXH3-128 of the item as it lies in its file (hash_item)
  Fingerprint elements;  // of the chunk's elements, by their index in the whole tensor
};

// kDamaged where the item is not what the metadata says of the chunk.
Result<ItemPass> pass_over_item(const Checkpoint& checkpoint, ChunkId chunk, Progress* progress);

}  // namespace shw
