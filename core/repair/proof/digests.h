// Replaces millions of item hashes in a certificate by one digest per tensor and one per file. A
// tile is in one tensor and in one file, so a broken pair of both points to the broken tile.
#pragma once

#include <string>
#include <vector>

#include "core/base/hash.h"
#include "core/model/checkpoint.h"

namespace shw {

// XXH3-128 of items, by chunk id unless stated otherwise; 16 bytes each, because millions are in
// memory at once. kNoHash: there is no item, or its hash was not needed.
using ItemHashes = std::vector<Hash128>;
inline constexpr Hash128 kNoHash{};

// XXH3-128 over item hashes, sorted, each as 32 hex digits: it does not change if items only get
// other boxes.
std::string digest_of_items(ItemHashes hashes);
// The hashes of a tensor's tiles, in chunk order, from those of the checkpoint by chunk id.
ItemHashes hashes_of(const Checkpoint& checkpoint, TensorId tensor, const ItemHashes& hashes);

// XXH3-128 over the shape and each tile's offsets, sizes and hash, sorted by those: which item has
// which box, independent of their order in the metadata.
std::string digest_of_tiles(const Checkpoint& checkpoint, TensorId tensor,
                            const ItemHashes& hashes);

// By file id: XXH3-128 over the hashes of its tensor items in the order of their offsets; empty if
// it has none.
std::vector<std::string> digests_of_files(const Checkpoint& checkpoint, const ItemHashes& hashes);

}  // namespace shw
