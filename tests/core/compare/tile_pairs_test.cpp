#include "core/compare/tile_pairs.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <tuple>

#include "core/compare/laid.h"

using namespace shw;
using shw::test::laid;
using shw::test::RankTile;
using shw::test::TiledTensor;

namespace {

using PairSeen = std::tuple<std::uint32_t, std::uint32_t, Extents, Extents>;

struct PairResults {
  bool complete = false;
  std::vector<PairSeen> pairs;
};

PairResults pairs_seen(const Checkpoint& a, const Checkpoint& b, std::size_t most = 1u << 30) {
  const BothCheckpoints both{a, b};
  TilePairs pairs;
  PairResults out;
  out.complete = add_pairs(both, {TensorId{0}, TensorId{0}}, compute_tile_cover(a, TensorId{0}),
                           compute_tile_cover(b, TensorId{0}), most, pairs);
  for (const TilePair& pair : pairs.pairs) {
    Box box = box_of(both, pairs, pair);
    out.pairs.emplace_back(static_cast<std::uint32_t>(index_of(pair.a)),
                           static_cast<std::uint32_t>(index_of(pair.b)), box.offsets, box.sizes);
  }
  return out;
}

// Compares every tile with every tile.
std::vector<PairSeen> slow_pairs(const TiledTensor& a, const TiledTensor& b) {
  std::vector<PairSeen> out;
  for (std::uint32_t i = 0; i < a.tiles.size(); ++i) {
    for (std::uint32_t j = 0; j < b.tiles.size(); ++j) {
      if (auto common = intersect(a.tiles[i].box, b.tiles[j].box))
        out.emplace_back(i, j, common->offsets, common->sizes);
    }
  }
  return out;
}

// A column through all rows, and single elements next to it.
TiledTensor column_and_elements(std::int64_t rows) {
  TiledTensor tensor{"w", Dtype::kUint8, {rows, 2}, Bytes(static_cast<std::size_t>(rows) * 2)};
  tensor.tiles.push_back({Box{{0, 0}, {rows, 1}}});
  for (std::int64_t i = 0; i < rows; ++i) tensor.tiles.push_back({Box{{i, 1}, {1, 1}}});
  return tensor;
}

}  // namespace

TEST_CASE("tiles meet those that a loop over all pairs says, in the order of the tiles") {
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    CAPTURE(round);
    TiledTensor a{"w", Dtype::kUint8, {31, 7, 9}, Bytes(31 * 7 * 9)}, b = a;
    for (TiledTensor* tensor : {&a, &b}) {
      test::cut_at_random(whole(a.shape), static_cast<int>(random() % 60), random, tensor->tiles);
      std::shuffle(tensor->tiles.begin(), tensor->tiles.end(), random);
    }
    auto seen = pairs_seen(*laid({a}, "a"), *laid({b}, "b"));
    CHECK(seen.complete);
    CHECK(seen.pairs == slow_pairs(a, b));
  }
}

TEST_CASE("single elements next to a tile as long as the tensor find what they meet") {
  const std::int64_t rows = 40'000;
  TiledTensor a = column_and_elements(rows), b = a;
  std::reverse(b.tiles.begin(), b.tiles.end());
  auto seen = pairs_seen(*laid({a}, "a"), *laid({b}, "b"));
  REQUIRE(seen.pairs.size() == static_cast<std::size_t>(rows) + 1);
  for (std::uint32_t i = 0; i < seen.pairs.size(); ++i) {
    CHECK(std::get<0>(seen.pairs[i]) == i);
    CHECK(std::get<1>(seen.pairs[i]) == static_cast<std::uint32_t>(rows) - i);
  }
}

TEST_CASE("more pairs than may be are none") {
  TiledTensor a = column_and_elements(20), b = a;
  std::reverse(b.tiles.begin(), b.tiles.end());
  auto left = laid({a}, "a"), right = laid({b}, "b");
  CHECK(pairs_seen(*left, *right, 21).pairs.size() == 21);
  auto refused = pairs_seen(*left, *right, 20);
  CHECK_FALSE(refused.complete);
  CHECK(refused.pairs.empty());
}
