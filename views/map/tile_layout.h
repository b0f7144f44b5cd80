// Converts tiles to rectangles: a pure function of boxes, slice, zoom and viewport, without imgui.
//
// Level of detail: a tile of at least kMinQuad pixels in both directions is a quad; smaller ones
// are painted into a raster of the viewport, where the worst status of a pixel wins, so that one
// wrong tile among a million is visible at any zoom.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/tiles/tile_set.h"

namespace shw {

inline constexpr float kMinQuad = 4;  // pixels; smaller tiles have no border and no label
inline constexpr std::size_t kMaxQuads = 40'000;  // further tiles go to the raster

// The visible elements and their size in pixels. Origin: upper left of the viewport.
struct TileView {
  double first_row = 0, first_column = 0;
  double row_pixels = 1, column_pixels = 1;  // per element
  int width = 0, height = 0;                 // viewport size in pixels
  friend bool operator==(const TileView&, const TileView&) = default;
};

struct TileQuad {
  float x0 = 0, y0 = 0, x1 = 0, y1 = 0;  // in the viewport, clipped
  std::uint32_t tile = 0;
};

struct TileLayout {
  TileView view;
  std::vector<TileQuad> quads;
  std::vector<std::uint32_t> raster;  // view.width * view.height: tile + 1, 0: none; or empty
};

// Among tiles of equal status in a pixel the heaviest wins; without weights the first.
struct TileWeights {
  const std::vector<std::uint16_t>* groups = nullptr;  // one per tile
  std::vector<std::uint16_t> of_group;
};
TileLayout layout_tiles(const TileSet& tiles, const Slice& slice, const TileView& view,
                        const TileWeights& weights = {});

// The element under a pixel; row and column may be outside the tensor.
struct Element {
  std::int64_t row = 0, column = 0;
};
Element element_at(const TileView& view, float x, float y);
// The full position: the slice's fixed coordinates with row and column inserted.
Extents tensor_index_of_element(const Slice& slice, std::size_t ndim, Element element);

// Zooms by `factor` around a pixel and keeps a part of the tensor visible.
TileView zoomed(const TileView& view, double factor, float x, float y);

}  // namespace shw
