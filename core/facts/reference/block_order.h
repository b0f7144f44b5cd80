// An order in which a tensor holds the blocks of another one, and where one meets it
// (spec/failures.md P19, N1 to N3, S5 E2 and E5).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/io/source.h"
#include "core/tensor/shape.h"

namespace shw {

struct BlockOrder {
  std::size_t dim = 0;
  std::int64_t block = 1;           // as many slices as stay together everywhere
  std::vector<std::int64_t> order;  // block i of the truth is block order[i] of the image
  // By how much more each is like its place than like any other; 0: their bytes are equal.
  double margin = 0;
};

// The same order in the largest blocks that it can be written with.
void coarsen(BlockOrder& order);

// XXH3-128, 16 bytes: equal for equal bytes.
std::string content_hash(BytesView bytes);

// A permutation that is known from somewhere.
enum class BlockFamily : std::uint8_t {
  kUnknown,
  kHalvesSwapped,   // N3: [g; u] and [u; g]
  kSwizzled,        // N1: every writer halves its slice and labels the halves r and r + DP
  kInterleaved,     // N3, S5 E5: g0 u0 g1 u1 on disk, [g; u] expected
  kHalved,          // the other way round
  kAxesTransposed,  // S5 E2, S4 order: blocks of two axes, cut in the other order
  kGroupedHeads,    // N2: per group q.. k v on disk, [Q; K; V] expected
  kStackedHeads,    // the other way round
};
struct BlockPattern {
  BlockFamily family = BlockFamily::kUnknown;
  std::int64_t segments = 1;           // the same order within each of that many equal parts
  std::int64_t first = 0, second = 0;  // sizes of the two axes; groups and queries a group
};
// `halves_a_writer`: every chunk is a block and every rank wrote two of them, which tells N1 from
// all else that looks alike.
BlockPattern recognise(const BlockOrder& order, bool halves_a_writer);

}  // namespace shw
