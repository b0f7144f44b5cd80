// Layouts that a thread makes: an idle window draws no frames for them.
#include "app/gui/gl_layouts.h"

#include <doctest/doctest.h>

#include "core/tiles/tile_set.h"
#include "make/snapshots.h"
#include "views/digest.h"

using namespace shw;

namespace {

// Draws nothing but rectangles, so that no GL context is needed.
TileRequest request_of(int side) {
  const auto digest = make_digest(make::many_tiles(side));
  TileRequest request;
  request.tiles = digest->picture->saved;
  request.slice = digest->picture->slice;
  request.view.width = request.view.height = 400;
  request.view.row_pixels = request.view.column_pixels =
      400.0 / static_cast<double>(digest->picture->saved->shape().front());
  return request;
}

}  // namespace

TEST_CASE("layouts: one that is made and no longer asked for needs no frames") {
  GlLayouts layouts(nullptr);
  const TileRequest large = request_of(200);
  REQUIRE(large.tiles->size() > 20'000);
  CHECK(layouts.get(0, large) == nullptr);
  CHECK(layouts.pending());
  layouts.end_frame();
  layouts.wait();
  CHECK_FALSE(layouts.pending());  // ready, and the view is gone
  layouts.end_frame();
  layouts.end_frame();
  CHECK(layouts.get(0, large) == nullptr);  // it was freed
  CHECK(layouts.pending());
  layouts.wait();
}

TEST_CASE("layouts: a small picture frees the large one that was waited for before it") {
  GlLayouts layouts(nullptr);
  const TileRequest large = request_of(200), small = request_of(10);
  CHECK(layouts.get(0, large) == nullptr);
  layouts.end_frame();
  CHECK(layouts.get(0, small) != nullptr);
  layouts.end_frame();
  layouts.wait();
  CHECK_FALSE(layouts.pending());
  layouts.end_frame();
  CHECK(layouts.get(0, small) != nullptr);
  layouts.end_frame();
  CHECK_FALSE(layouts.pending());
}
