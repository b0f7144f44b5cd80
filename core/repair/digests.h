// What stands for millions of hashes of items in a certificate: one digest a tensor and one a file.
// A tile lies in one tensor and in one file, so that where both are broken is the broken tile.
#pragma once

#include <string>
#include <vector>

#include "core/model/checkpoint.h"

namespace shw {

// XXH3-128 over hashes of items, each as 32 hex digits, in the order of these: items that only got
// other boxes have the same one.
std::string digest_of_items(std::vector<std::string> hashes);
// The hashes of a tensor's tiles, in chunk order. `hashes`: of the checkpoint, by chunk id.
std::vector<std::string> hashes_of(const Checkpoint& checkpoint, TensorId tensor,
                                   const std::vector<std::string>& hashes);

// XXH3-128 over the shape and, in the order of their boxes (offsets, then sizes, then hashes), each
// tile's offsets, sizes and hash: which item is which box, in whatever order the metadata says it.
std::string digest_of_tiles(const Checkpoint& checkpoint, TensorId tensor,
                            const std::vector<std::string>& hashes);

// By file id: XXH3-128 over the hashes of the items of tensors in it, in the order of their
// offsets; empty where it has none.
std::vector<std::string> digests_of_files(const Checkpoint& checkpoint,
                                          const std::vector<std::string>& hashes);

}  // namespace shw
