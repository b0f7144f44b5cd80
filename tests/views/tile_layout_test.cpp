#include "views/map/tile_layout.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "views/layout_cache.h"
#include "views/map/tensor_view.h"

using namespace shw;

namespace {

TileSet grid(std::int64_t side, std::int64_t tile, std::optional<std::int64_t> bad = {}) {
  TileSet tiles(Extents{side * tile, side * tile});
  for (std::int64_t i = 0; i < side * side; ++i)
    tiles.add(Extents{i / side * tile, i % side * tile}, Extents{tile, tile},
              static_cast<std::uint32_t>(i % 64), i == bad ? TileStatus::kBad : TileStatus::kFine,
              ChunkId{static_cast<std::uint32_t>(i)});
  tiles.seal();
  return tiles;
}
const Slice kRowsColumns{0, 1, {0, 0}};

// The slow way.
std::optional<std::uint32_t> find_slowly(const TileSet& tiles, ExtentsView point) {
  for (std::uint32_t t = 0; t < tiles.size(); ++t) {
    bool inside = true;
    for (std::size_t d = 0; d < tiles.ndim(); ++d)
      inside = inside && point[d] >= tiles.offset(t, d) &&
               point[d] < tiles.offset(t, d) + tiles.extent(t, d);
    if (inside) return t;
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("large tiles become quads that share their edges") {
  TileSet tiles = grid(4, 16);
  TileLayout layout = layout_tiles(tiles, kRowsColumns, {0, 0, 1.3, 1.7, 108, 83});
  REQUIRE(layout.quads.size() == 16);
  CHECK(layout.raster.empty());
  CHECK(layout.quads[0].x1 == layout.quads[1].x0);
  CHECK(layout.quads[0].y1 == layout.quads[4].y0);
  CHECK(layout.quads[15].x1 <= 108);
}

TEST_CASE("small tiles are painted, and every pixel of the tensor has one") {
  TileSet tiles = grid(100, 16);
  TileLayout layout = layout_tiles(tiles, kRowsColumns, {0, 0, 0.1, 0.1, 160, 160});
  CHECK(layout.quads.empty());
  REQUIRE(layout.raster.size() == 160 * 160);
  for (std::uint32_t pixel : layout.raster) CHECK(pixel != 0);
}

TEST_CASE("tile layout: no pixel is left between neighbours whose edge falls on it") {
  TileSet tiles(Extents{16'000, 1});
  for (std::int64_t i = 0; i < 1000; ++i)
    tiles.add(Extents{i * 16, 0}, Extents{16, 1}, 0, TileStatus::kFine,
              ChunkId{static_cast<std::uint32_t>(i)});
  tiles.seal();
  for (int height = 1001; height < 1400; ++height) {
    const TileView view{0, 0, height / 16'000.0, 1, 1, height};
    const TileLayout layout = layout_tiles(tiles, kRowsColumns, view);
    CAPTURE(height);
    CHECK(std::ranges::count(layout.raster, 0u) == 0);
  }
}

TEST_CASE("one bad tile among a hundred thousand is seen at every zoom") {
  std::int64_t side = 320;
  auto shared = std::make_shared<const TileSet>(grid(side, 16, side * 200 + 123));
  const TileSet& tiles = *shared;
  for (double pixels : {0.0005, 0.004, 0.02, 0.1, 0.2}) {
    int extent = static_cast<int>(std::max(1.0, static_cast<double>(side * 16) * pixels));
    TileLayout layout = layout_tiles(tiles, kRowsColumns, {0, 0, pixels, pixels, extent, extent});
    bool seen = false;
    for (std::uint32_t pixel : layout.raster)
      seen = seen || (pixel != 0 && tiles.status(pixel - 1) == TileStatus::kBad);
    CHECK(seen);
    TileRequest request{shared, kRowsColumns, layout.view, {2, 32}, {0, 0, {}, dark_theme().tiles}};
    auto colours = paint_layout(request).pixels;
    CHECK(std::count(colours.begin(), colours.end(), dark_theme().bad) >= 1);
  }
}

TEST_CASE("only tiles that the slice crosses are drawn") {
  TileSet tiles(Extents{8, 4, 4});
  for (std::int64_t i = 0; i < 4; ++i)
    tiles.add(Extents{i * 2, 0, 0}, Extents{2, 4, 4}, 0, TileStatus::kFine, ChunkId{0});
  tiles.seal();
  TileLayout layout = layout_tiles(tiles, {1, 2, {5, 0, 0}}, {0, 0, 10, 10, 40, 40});
  REQUIRE(layout.quads.size() == 1);
  CHECK(layout.quads[0].tile == 2);
}

TEST_CASE("what is under a point is found as the slow way finds it, whatever the tiling") {
  std::mt19937 random(7);
  for (int round = 0; round < 40; ++round) {
    std::size_t ndim = 1 + random() % 3;
    Extents shape(ndim, 24);
    TileSet tiles(shape);
    auto count = static_cast<std::uint32_t>(1 + random() % 60);
    for (std::uint32_t t = 0; t < count; ++t) {
      Extents at(ndim), size(ndim);
      for (std::size_t d = 0; d < ndim; ++d) {
        at[d] = round % 2 ? static_cast<std::int64_t>(random() % 4 * 6)
                          : static_cast<std::int64_t>(random() % 24);
        size[d] = round % 2 ? 6 : static_cast<std::int64_t>(1 + random() % 9);
      }
      tiles.add(at, size, 0, TileStatus::kFine, ChunkId{t});
    }
    tiles.seal();
    for (int probe = 0; probe < 200; ++probe) {
      Extents point(ndim);
      for (auto& p : point) p = static_cast<std::int64_t>(random() % 30) - 3;
      CHECK(tiles.find(point) == find_slowly(tiles, point));
    }
  }
}

TEST_CASE("hostile boxes are laid out and looked up without harm") {
  TileSet tiles(Extents{4, 4});
  std::int64_t far = std::int64_t{1} << 62;
  tiles.add(Extents{far, -far}, Extents{far, far}, kNoWriter, TileStatus::kBad, ChunkId{0});
  tiles.add(Extents{0}, Extents{}, 1, TileStatus::kFine, ChunkId{1});
  tiles.add(Extents{0, 0}, Extents{far, far}, 2, TileStatus::kFine, ChunkId{2});
  tiles.seal();
  TileLayout layout = layout_tiles(tiles, kRowsColumns, {0, 0, 10, 10, 40, 40});
  CHECK(layout.quads.size() >= 1);
  CHECK(tiles.find(Extents{3, 3}).has_value());
  CHECK_FALSE(tiles.find(Extents{-1, 3}).has_value());
}

TEST_CASE("zooming keeps the element under the mouse where it is") {
  TileView view{10, 20, 2, 3, 400, 300};
  TileView next = zoomed(view, 2.5, 120, 90);
  Element before = element_at(view, 120, 90), after = element_at(next, 120, 90);
  CHECK(before.row == after.row);
  CHECK(before.column == after.column);
}

TEST_CASE("panels share the room at one scale and keep their titles whole") {
  PanelOptions wishes[] = {{640, 150}, {1280, 150}, {1280, 100}};
  double pixels = column_pixels_for(wishes, 700, 50);
  double total = 100;
  for (const PanelOptions& wish : wishes)
    total += std::max<double>(wish.head_width, wish.columns * pixels);
  CHECK(total <= 700.01);
  CHECK(total >= 699);
  CHECK(column_pixels_for({}, 100, 10) >= 0);
}
