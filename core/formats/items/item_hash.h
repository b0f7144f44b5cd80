// Hashes, checksums and fingerprints of an item in a single pass over its stored bytes. Call these
// in disk order: the cursor keeps files open between items, and small items are read together.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/hash.h"
#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/formats/items/item_cursor.h"
#include "core/model/checkpoint.h"
#include "core/tensor/fingerprint.h"

namespace shw {

// The hash of an item and the result of its checksum verification.
struct VerifiedItem {
  Hash128 hash;  // XXH3-128 (hash_item)
  // File, record and byte of a checksum mismatch; empty if there is none.
  std::string mismatch = {};
};

struct HashedElements {
  Hash128 hash;          // XXH3-128 of the stored item (hash_item)
  Fingerprint elements;  // of the chunk's elements, by index in the whole tensor
};

// XXH3-128 of the stored item (holes included); a relabel does not change it.
Result<Hash128> hash_item(ItemCursor& items, const ItemPlace& place, Progress* progress);
// hash_item() as 32 hex digits.
Result<std::string> hash_item(const Checkpoint& checkpoint, const ItemPlace& place,
                              Progress* progress);
// kDamaged if the item does not match its chunk's record.
Result<HashedElements> hash_and_fingerprint(ItemCursor& items, ChunkId chunk, Progress* progress);
// Hash and checksum verification of a chunk's or an entry's item. Reads no byte twice except
// headers and items that must be decoded.
Result<VerifiedItem> hash_and_verify(ItemCursor& items, ChunkId chunk, Progress* progress);
Result<VerifiedItem> hash_and_verify(ItemCursor& items, const NonTensorEntry& object,
                                     Progress* progress);

}  // namespace shw
