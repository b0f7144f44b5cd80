#include "views/layout_cache.h"

namespace shw {

bool same_request(const TileRequest& a, const TileRequest& b) {
  return a.tiles == b.tiles && a.slice == b.slice && a.view == b.view && a.grid == b.grid &&
         a.colouring == b.colouring;
}

PaintedLayout paint_layout(const TileRequest& request) {
  PaintedLayout painted{request, layout_tiles(*request.tiles, request.slice, request.view), {}, 0};
  painted.pixels = colour_raster(painted.layout, *request.tiles, request.grid, request.colouring);
  return painted;
}

const PaintedLayout* LayoutCache::get(int slot, const TileRequest& request) {
  auto found = slots_.find(slot);
  if (found == slots_.end() || !same_request(found->second.request, request))
    found = slots_.insert_or_assign(slot, paint_layout(request)).first;
  return &found->second;
}

}  // namespace shw
