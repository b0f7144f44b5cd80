// Zoomed pictures of one tensor: they show one tile and share the free space.
#include "views/map/same_tiles.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>

#include "make/snapshots.h"
#include "views/driver.h"
#include "views/map/tensor_view.h"

using namespace shw;

namespace {

// Two tiles, one above the other or side by side, of chunks 0 and 1 and ranks 4 and 5.
TileSet two_tiles(bool across, bool has_chunks = true) {
  const std::int64_t high = across ? 4 : 8, wide = across ? 6 : 3;
  TileSet tiles(Extents{2, high, wide});
  for (std::uint32_t t = 0; t < 2; ++t)
    tiles.add(Extents{0, across ? 0 : 4 * t, across ? 3 * t : 0}, Extents{2, 4, 3}, 4 + t,
              TileStatus::kFine, ChunkId{has_chunks ? t : 0xFFFFFFFFu});
  tiles.seal();
  return tiles;
}

std::ptrdiff_t count_of(const Driver& driver, std::string_view text) {
  return std::ranges::count(driver.marks.texts, text, &TextMark::text);
}

}  // namespace

TEST_CASE("same tiles: a tile is found by its chunk, without chunks by its rank") {
  const TileSet saved = two_tiles(false);
  const Slice slice{1, 2, {1, 0, 0}};
  const auto tile = tile_at(saved, slice, 5.5, 1);
  REQUIRE(tile == 1);
  for (const bool has_chunks : {true, false}) {
    const TileShift shift = shift_to_same_tile(saved, *tile, two_tiles(true, has_chunks), slice);
    CHECK(shift.is_known);
    CHECK(shift.row == -4);
    CHECK(shift.column == 3);
  }
  TileSet other(Extents{2, 4, 6});
  other.add(Extents{0, 0, 0}, Extents{1, 4, 6}, 5, TileStatus::kFine, ChunkId{1});
  other.seal();
  CHECK_FALSE(
      shift_to_same_tile(saved, *tile, other, slice).is_known);  // the slice does not cross it
  CHECK_FALSE(shift_to_same_tile(saved, *tile, TileSet(Extents{4, 6}), slice).is_known);
  CHECK(tile_at(saved, slice, 1e9, -1) == 1);  // the nearest element
}

TEST_CASE("same tiles: zoomed panels fill the room, and none is wider than it is") {
  const std::array panels{PanelOptions{640, 100}, PanelOptions{1280, 100}, PanelOptions{1280, 100}};
  const double pixels = column_pixels_for(panels, 700, 20);
  for (const double zoom : {1.0, 1.5, 4.0, 100.0}) {
    CAPTURE(zoom);
    const double widest = widest_panel_for(panels, 700, 20, pixels * zoom);
    double width = 40;
    for (const PanelOptions& panel : panels)
      width += std::max(100.0, std::min(panel.columns * pixels * zoom, widest));
    CHECK(width == doctest::Approx(700).epsilon(0.001));
  }
}

TEST_CASE("same tiles: all pictures go to the tile in the middle of the one that is moved") {
  Driver driver(make::demo_planned(), {1600, 900}, 1);
  driver.frame();
  driver.desk.map.zoom = 4;
  driver.frame();
  driver.frame();
  const auto before = count_of(driver, "640");
  driver.desk.map.pan_row = 5000;  // on the tile at [0, 4096, 0], after the repair at [0, 0, 640]
  driver.frame();
  driver.frame();
  CHECK(count_of(driver, "640") > before);

  const ImVec2 at = driver.middle("map/after");
  driver.drag(at, {at.x + 3000, at.y});
  driver.frame();
  driver.frame();
  CHECK(driver.desk.map.leads_after);
  CHECK(count_of(driver, "640") == before);
  for (const std::string& fault : driver.text_faults()) FAIL_CHECK(fault);
}
