// Tiles to rectangles: a pure function of boxes, slice, zoom and viewport. No imgui here.
//
// Level of detail: a tile of at least kMinQuad pixels both ways is a quad of its own; smaller ones
// are painted into a raster of the viewport, pixel by pixel, where the worst status wins, so that
// one bad tile among a million stays visible at any zoom.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/tiles/tile_set.h"

namespace shw {

inline constexpr float kMinQuad = 4;              // pixels; below: no border, no label
inline constexpr std::size_t kMaxQuads = 40'000;  // tiles over one another; the rest is painted

// Which elements lie in the viewport, and how large one is. Origin: the viewport's upper left.
struct TileView {
  double first_row = 0, first_column = 0;
  double row_pixels = 1, column_pixels = 1;  // of one element
  int width = 0, height = 0;                 // of the viewport, pixels
  friend bool operator==(const TileView&, const TileView&) = default;
};

struct TileQuad {
  float x0 = 0, y0 = 0, x1 = 0, y1 = 0;  // in the viewport, clipped to it
  std::uint32_t tile = 0;
};

struct TileLayout {
  TileView view;
  std::vector<TileQuad> quads;
  std::vector<std::uint32_t> raster;  // view.width * view.height: tile + 1, 0 for none; or empty
};

// Of tiles of the same status that share a pixel the heaviest is seen; without, the first.
struct TileWeights {
  const std::vector<std::uint16_t>* groups = nullptr;  // one a tile
  std::vector<std::uint16_t> of_group;
};
TileLayout layout_tiles(const TileSet& tiles, const Slice& slice, const TileView& view,
                        const TileWeights& weights = {});

// The element under a pixel of the viewport: row and column may lie outside the tensor.
struct Element {
  std::int64_t row = 0, column = 0;
};
Element element_at(const TileView& view, float x, float y);
// As a point of the tensor: the slice's position with row and column put in.
Extents point_at(const Slice& slice, std::size_t ndim, Element element);

// Zooms by `factor` around a pixel, and keeps at least a corner of the extents in view.
TileView zoomed(const TileView& view, double factor, float x, float y);

}  // namespace shw
