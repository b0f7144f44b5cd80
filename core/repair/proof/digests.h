// What stands for millions of hashes of items in a certificate: one digest a tensor and one a file.
// A tile lies in one tensor and in one file, so that where both are broken is the broken tile.
#pragma once

#include <string>
#include <vector>

#include "core/base/hash.h"
#include "core/model/checkpoint.h"

namespace shw {

// XXH3-128 of items, by chunk id or in an order that is said. Millions of them are held at once, of
// 16 bytes each. kNoHash: there is no item, or it was not asked for.
using ItemHashes = std::vector<Hash128>;
inline constexpr Hash128 kNoHash{};

// XXH3-128 over hashes of items, each as 32 hex digits, in the order of these: items that only got
// other boxes have the same one.
std::string digest_of_items(ItemHashes hashes);
// The hashes of a tensor's tiles, in chunk order. `hashes`: of the checkpoint, by chunk id.
ItemHashes hashes_of(const Checkpoint& checkpoint, TensorId tensor, const ItemHashes& hashes);

// XXH3-128 over the shape and, in the order of their boxes (offsets, then sizes, then hashes), each
// tile's offsets, sizes and hash: which item is which box, in whatever order the metadata says it.
std::string digest_of_tiles(const Checkpoint& checkpoint, TensorId tensor,
                            const ItemHashes& hashes);

// By file id: XXH3-128 over the hashes of the items of tensors in it, in the order of their
// offsets; empty where it has none.
std::vector<std::string> digests_of_files(const Checkpoint& checkpoint, const ItemHashes& hashes);

}  // namespace shw
