// Pairs of tiles of two equally shaped tensors that share elements, so that each common element is
// in exactly one pair.
#pragma once

#include <cstdint>
#include <vector>

#include "core/compare/tile_cover.h"
#include "core/model/checkpoint.h"

namespace shw {

// The checkpoints of a pair's tiles. Two overlapping tiles of one checkpoint must agree before they
// are compared with the other's.
enum class PairSource : std::uint8_t { kBoth, kA, kB };

struct TilePair {
  ChunkId a{}, b{};
  std::uint32_t box = 0;  // kAllShared, or an index into TilePairs::boxes
  PairSource of = PairSource::kBoth;
};
inline constexpr std::uint32_t kAllShared = 0xFFFFFFFFu;

// Pairs of many tensors, consecutively.
struct TilePairs {
  std::vector<TilePair> pairs;
  std::vector<Box> boxes;  // relative to the tensor
};

// The two compared checkpoints.
struct BothCheckpoints {
  const Checkpoint& a;
  const Checkpoint& b;
};
// A tensor of each, of equal shape.
struct TensorPair {
  TensorId a{}, b{};
};

// Appends the pairs of a tensor; none if a cover is too tangled. Returns false, and appends
// nothing, if all tensors together would exceed `most` pairs: rows against columns intersect in as
// many boxes as there are rows times columns.
bool add_pairs(const BothCheckpoints& both, TensorPair tensor, const TileCover& a,
               const TileCover& b, std::size_t most, TilePairs& pairs);

// The part of the tensor that both tiles of a pair hold.
Box box_of(const BothCheckpoints& both, const TilePairs& pairs, const TilePair& pair);

}  // namespace shw
