// The order of blocks in a tensor compared with another tensor, and the known causes of such
// orders.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/io/source.h"
#include "core/tensor/shape.h"

namespace shw {

struct BlockOrder {
  std::size_t dim = 0;
  std::int64_t block = 1;           // largest number of adjacent slices that stay together
  std::vector<std::int64_t> order;  // block i of the reference is block order[i] of the tensor
  // Least margin of the best match over any other match; 0: bytes are equal.
  double margin = 0;
};

// Rewrites the order with the largest possible blocks.
void merge_consecutive_blocks(BlockOrder& order);

// XXH3-128 as 16 bytes: equal for equal bytes.
std::string content_hash(BytesView bytes);

// Permutations with a known cause.
enum class BlockFamily : std::uint8_t {
  kUnknown,
  kHalvesSwapped,   // [g; u] instead of [u; g]
  kSwizzled,        // every writer halves its slice and labels the halves r and r + DP
  kInterleaved,     // g0 u0 g1 u1 on disk, [g; u] expected
  kHalved,          // [g; u] on disk, g0 u0 g1 u1 expected
  kAxesTransposed,  // blocks of two axes, split in the other order
  kGroupedHeads,    // per group q.. k v on disk, [Q; K; V] expected
  kStackedHeads,    // [Q; K; V] on disk, per group q.. k v expected
};
struct BlockPattern {
  BlockFamily family = BlockFamily::kUnknown;
  std::int64_t segments = 1;           // number of equal parts with the same order inside
  std::int64_t first = 0, second = 0;  // sizes of the two axes; groups, and queries per group
};
// `halves_a_writer`: every chunk is a block and every rank wrote two of them, which distinguishes
// kSwizzled from similar orders.
BlockPattern recognise_block_pattern(const BlockOrder& order, bool halves_a_writer);

}  // namespace shw
