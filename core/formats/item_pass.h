// Hashes, checksums and fingerprints of an item in a single pass over its bytes.
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

// The hash of an item and the result of its checksum verification.
struct VerifiedItem {
  Hash128 hash;  // XXH3-128 (hash_item)
  // File, record and byte of a checksum mismatch; empty if there is none.
  std::string mismatch = {};
};

struct ItemPass {
  Hash128 hash;          // XXH3-128 of the stored item (hash_item)
  Fingerprint elements;  // of the chunk's elements, by index in the whole tensor
};

// Indices into `chunks` in the order of their items on disk.
std::vector<std::uint32_t> order_on_disk(const Checkpoint& checkpoint,
                                         std::span<const ChunkId> chunks);

// All chunks in the order of their items on disk.
std::vector<ChunkId> chunks_on_disk(const Checkpoint& checkpoint);

// Not thread-safe. Call in disk order: files stay open between items, and small items are read
// together.
class ItemHasher {
 public:
  explicit ItemHasher(const Checkpoint& checkpoint);
  ~ItemHasher();
  // kDamaged if the item does not match its chunk's record.
  Result<ItemPass> hash_and_fingerprint(ChunkId chunk, Progress* progress);
  // Returns the same hash as hash_item().
  Result<Hash128> hash(const ItemPlace& place, Progress* progress);
  // Hash and checksum verification of a chunk's or an entry's item. Reads no byte twice except
  // headers and items that must be decoded.
  Result<VerifiedItem> hold(ChunkId chunk, Progress* progress);
  Result<VerifiedItem> hold(const NonTensorEntry& object, Progress* progress);

 private:
  Result<VerifiedItem> hold(const ItemPlace& place, const ItemReader* reader,
                            std::span<const std::string> transforms, Progress* progress);
  Result<std::string> mismatch_in_header(ChunkId chunk, const ItemPlace& place);

  const Checkpoint& checkpoint_;
  std::unique_ptr<ItemFiles> files_;
};

}  // namespace shw
