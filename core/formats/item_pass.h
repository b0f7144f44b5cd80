// All that a proof asks of an item, in one pass over its bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/hash.h"
#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/model/checkpoint.h"
#include "core/tensor/fingerprint.h"

namespace shw {

class ItemFiles;
struct ItemReader;

// An item as it lies in its file, held against the checksums that it has.
struct HeldItem {
  Hash128 hash;  // XXH3-128 (hash_item)
  // Why it is not what was saved: file, record and byte. Empty where nothing says so.
  std::string doubt = {};
};

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
  // The same, and what it is held against, of the item of a chunk, and of an object that has one.
  // No byte is read twice for it, but of headers and of items that have to be decoded.
  Result<HeldItem> hold(ChunkId chunk, Progress* progress);
  Result<HeldItem> hold(const ObjectRow& object, Progress* progress);

 private:
  Result<HeldItem> hold(const ItemPlace& place, const ItemReader* reader,
                        std::span<const std::string> transforms, Progress* progress);
  Result<std::string> doubt_of_header(ChunkId chunk, const ItemPlace& place);

  const Checkpoint& checkpoint_;
  std::unique_ptr<ItemFiles> files_;
};

}  // namespace shw
