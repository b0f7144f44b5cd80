// Which tiles of two tensors of one shape hold the same elements: each element that both have in
// one pair, however either is cut.
#pragma once

#include <cstdint>
#include <vector>

#include "core/compare/tile_cover.h"
#include "core/model/checkpoint.h"

namespace shw {

// Whose the two tiles of a pair are. Of one checkpoint: they hold the same elements twice, and have
// to agree before anything is held against them.
enum class PairOf : std::uint8_t { kBoth, kA, kB };

struct TilePair {
  ChunkId a{}, b{};
  std::uint32_t box = 0;  // kAllShared, or an index into TilePairs::boxes
  PairOf of = PairOf::kBoth;
};
inline constexpr std::uint32_t kAllShared = 0xFFFFFFFFu;

// Of many tensors, one after the other.
struct TilePairs {
  std::vector<TilePair> pairs;
  std::vector<Box> boxes;  // in the tensor
};

// The checkpoints that are held against each other.
struct BothCheckpoints {
  const Checkpoint& a;
  const Checkpoint& b;
};
// A tensor of both, of one shape.
struct TensorPair {
  TensorId a{}, b{};
};

// Appends the pairs of a tensor; nothing where a cover is too tangled. False, and nothing is
// appended, where there would be more than `most` of all tensors together: rows against columns
// meet in as many places as there are rows times columns.
bool add_pairs(const BothCheckpoints& both, TensorPair tensor, const TileCover& a,
               const TileCover& b, std::size_t most, TilePairs& pairs);

// The part of the tensor that a pair holds.
Box box_of(const BothCheckpoints& both, const TilePairs& pairs, const TilePair& pair);

}  // namespace shw
