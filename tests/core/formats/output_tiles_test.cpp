#include "core/formats/output_tiles.h"

#include <doctest/doctest.h>

#include <random>

using namespace shw;

namespace {

OutputTile random_tile(std::mt19937& dice) {
  auto id = [&](std::uint32_t below) { return static_cast<std::uint32_t>(dice()) % below; };
  OutputTile tile;
  const std::size_t ndim = dice() % 7;
  for (std::size_t d = 0; d < ndim; ++d) {
    tile.box.offsets.push_back(static_cast<std::int64_t>(dice()) << dice() % 31);
    tile.box.sizes.push_back(static_cast<std::int64_t>(dice() % 3));
  }
  tile.writer = dice() % 2 == 0 ? 0xFFFFFFFFu : id(5);
  if (dice() % 3 == 0) tile.kept = ChunkId{id(5)};
  if (dice() % 4 == 0) {
    RareOutputTileFields more;
    more.made_of = {FileId{id(9)}};
    tile.more = std::make_shared<const RareOutputTileFields>(std::move(more));
  }
  return tile;
}

bool are_alike(const OutputTile& a, const OutputTile& b) {
  return a.box == b.box && a.writer == b.writer && a.kept == b.kept && a.more == b.more;
}

}  // namespace

TEST_CASE("tiles that are kept in few bytes are those that were given") {
  std::mt19937 dice(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<OutputTile> given;
    OutputTiles tiles;
    const std::size_t count = dice() % 40;
    for (std::size_t i = 0; i < count; ++i) {
      OutputTile tile = random_tile(dice);
      // Equal sizes of neighbours are stored once.
      const std::size_t ndim = tile.box.sizes.size();
      if (i > 0 && dice() % 2 == 0 && given.back().box.sizes.size() == ndim)
        tile.box.sizes = given.back().box.sizes;
      given.push_back(tile);
      tiles.push_back(tile);
    }
    tiles.shrink_to_fit();
    REQUIRE(tiles.size() == given.size());
    CHECK(tiles.empty() == given.empty());
    for (std::size_t i = 0; i < count; ++i) {
      CHECK(are_alike(tiles[i], given[i]));
      CHECK(tiles.box(i) == given[i].box);
    }
    std::size_t seen = 0;
    for (const OutputTile& tile : tiles) CHECK(are_alike(tile, given[seen++]));
    CHECK(seen == count);
  }
}
