#include "views/map/tile_layout.h"

#include <algorithm>
#include <cmath>

namespace shw {
namespace {

struct Span {
  double from = 0, to = 0;
};

// Range of a tile along one side of the viewport; without a dim every tile fills the side.
Span span_of(const TileSet& tiles, std::uint32_t tile, int dim, double first, double pixels,
             int side) {
  if (dim < 0) return {0, static_cast<double>(side)};
  auto d = static_cast<std::size_t>(dim);
  // A tile ends at the very number where its neighbour begins: no pixel is left between them.
  const auto from = static_cast<double>(tiles.offset(tile, d));
  const auto to = from + static_cast<double>(tiles.extent(tile, d));
  return {(from - first) * pixels, (to - first) * pixels};
}

// Rounds so that neighbouring tiles share an edge.
float snap_to_pixel(double value, int side) {
  return static_cast<float>(std::clamp(std::round(value), 0.0, static_cast<double>(side)));
}

// Priority in a pixel: status, then weight.
std::uint32_t tile_priority(const TileSet& tiles, const TileWeights& weights, std::uint32_t tile) {
  auto status = static_cast<std::uint32_t>(tiles.status(tile)) << 16;
  return weights.groups == nullptr ? status : status | weights.of_group[(*weights.groups)[tile]];
}

void paint(TileLayout& layout, const TileSet& tiles, const TileWeights& weights, std::uint32_t tile,
           Span down, Span across) {
  const TileView& view = layout.view;
  if (layout.raster.empty())
    layout.raster.assign(
        static_cast<std::size_t>(view.width) * static_cast<std::size_t>(view.height), 0);
  // An edge on a pixel may be computed a little before it.
  auto pixel_at = [](double edge) { return std::floor(std::max(edge, 0.0) + 1e-6); };
  auto first = [&](double from) { return static_cast<int>(pixel_at(from)); };
  // Every tile covers at least the pixel in which it begins.
  auto last = [&](double from, double to, int side) {
    return static_cast<int>(std::min<double>(side, std::max(pixel_at(to), pixel_at(from) + 1)));
  };
  int x0 = first(across.from), x1 = last(across.from, across.to, view.width);
  int y0 = first(down.from), y1 = last(down.from, down.to, view.height);
  std::uint32_t weight = tile_priority(tiles, weights, tile);
  for (int y = y0; y < y1; ++y) {
    std::uint32_t* row =
        layout.raster.data() + static_cast<std::size_t>(y) * static_cast<std::size_t>(view.width);
    for (int x = x0; x < x1; ++x) {
      if (row[x] == 0 || weight > tile_priority(tiles, weights, row[x] - 1)) row[x] = tile + 1;
    }
  }
}

}  // namespace

TileLayout layout_tiles(const TileSet& tiles, const Slice& slice, const TileView& view,
                        const TileWeights& weights) {
  TileLayout layout{view, {}, {}};
  if (view.width <= 0 || view.height <= 0) return layout;
  for (std::uint32_t tile = 0; tile < tiles.size(); ++tile) {
    Span across =
        span_of(tiles, tile, slice.column, view.first_column, view.column_pixels, view.width);
    if (across.to <= 0 || across.from >= view.width) continue;
    Span down = span_of(tiles, tile, slice.row, view.first_row, view.row_pixels, view.height);
    if (down.to <= 0 || down.from >= view.height) continue;
    if (!tiles.crosses(tile, slice)) continue;
    bool small = across.to - across.from < kMinQuad || down.to - down.from < kMinQuad;
    if (small || layout.quads.size() >= kMaxQuads) {
      paint(layout, tiles, weights, tile, down, across);
      continue;
    }
    layout.quads.push_back(
        {snap_to_pixel(across.from, view.width), snap_to_pixel(down.from, view.height),
         snap_to_pixel(across.to, view.width), snap_to_pixel(down.to, view.height), tile});
  }
  return layout;
}

Element element_at(const TileView& view, float x, float y) {
  auto along = [](double first, float pixel, double pixels) {
    double value = std::floor(first + static_cast<double>(pixel) / pixels);
    return static_cast<std::int64_t>(std::clamp(value, -9e18, 9e18));
  };
  return {along(view.first_row, y, view.row_pixels),
          along(view.first_column, x, view.column_pixels)};
}

Extents tensor_index_of_element(const Slice& slice, std::size_t ndim, Element element) {
  Extents point(ndim, 0);
  for (std::size_t d = 0; d < ndim; ++d) {
    int dim = static_cast<int>(d);
    point[d] = dim == slice.row      ? element.row
               : dim == slice.column ? element.column
               : d < slice.at.size() ? slice.at[d]
                                     : 0;
  }
  return point;
}

TileView zoomed(const TileView& view, double factor, float x, float y) {
  TileView next = view;
  next.row_pixels *= factor;
  next.column_pixels *= factor;
  next.first_row += y / view.row_pixels - y / next.row_pixels;
  next.first_column += x / view.column_pixels - x / next.column_pixels;
  return next;
}

}  // namespace shw
