// All that a proof asks of an item, in one pass over its bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/hash.h"
#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/model/checkpoint.h"
#include "core/tensor/fingerprint.h"

namespace shw {

class ItemFiles;

struct ItemPass {
  Hash128 hash;          // XXH3-128 of the item as it lies in its file (hash_item)
  Fingerprint elements;  // of the chunk's elements, by their index in the whole tensor
};

// Chunks in the order in which their items lie, file by file: indices into `chunks`.
std::vector<std::uint32_t> order_on_disk(const Checkpoint& checkpoint,
                                         std::span<const ChunkId> chunks);

// All of them.
std::vector<ChunkId> chunks_on_disk(const Checkpoint& checkpoint);

// For one thread that goes from item to item, as they lie in their files: a file stays open from
// the first of its items to the last, and small ones are read together.
class ItemPasses {
 public:
  explicit ItemPasses(const Checkpoint& checkpoint);
  ~ItemPasses();
  // kDamaged where the item is not what the metadata says of the chunk.
  Result<ItemPass> over(ChunkId chunk, Progress* progress);
  // What hash_item() says.
  Result<Hash128> hash(const ItemPlace& place, Progress* progress);

 private:
  const Checkpoint& checkpoint_;
  std::unique_ptr<ItemFiles> files_;
};

}  // namespace shw
