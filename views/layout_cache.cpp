#include "views/layout_cache.h"

namespace shw {

bool same_request(const TileRequest& a, const TileRequest& b) {
  return a.tiles == b.tiles && a.slice == b.slice && a.view == b.view && a.grid == b.grid &&
         a.colouring == b.colouring && a.paint == b.paint && a.after == b.after;
}

namespace {

// Limit for pixels with markers: only the first few wrong places get a ring.
constexpr std::size_t kMaxBadPixels = 20'000;

// Caches colours: a million tiles have a few thousand distinct ones.
class TileFills {
 public:
  explicit TileFills(const TileRequest& request) : request_(request) {
    by_rank_.resize(static_cast<std::size_t>(request.grid.rows) * request.grid.columns);
    for (std::size_t rank = 0; rank < by_rank_.size(); ++rank)
      by_rank_[rank] =
          tile_colour(static_cast<std::uint32_t>(rank), request.grid, request.colouring);
    if (request.paint == nullptr) return;
    groups_ = request.after ? &request.paint->after : &request.paint->saved;
    for (const PaintGroup& group : request.paint->groups)
      by_group_.push_back(colour_of(group, request.colouring.palette));
  }

  Rgba of(std::uint32_t tile) const {
    std::uint32_t writer = request_.tiles->writer(tile);
    if (groups_ != nullptr && tile < groups_->size()) {
      Rgba colour = by_group_[(*groups_)[tile]];
      const auto& only = request_.colouring.only;
      return only && *only != writer ? with_alpha(colour, kAside) : colour;
    }
    if (writer == kNoWriter) return request_.colouring.palette.nobody;
    return writer < by_rank_.size() ? by_rank_[writer]
                                    : tile_colour(writer, request_.grid, request_.colouring);
  }

 private:
  const TileRequest& request_;
  std::vector<Rgba> by_rank_, by_group_;
  const std::vector<std::uint16_t>* groups_ = nullptr;
};

}  // namespace

PaintedLayout paint_layout(const TileRequest& request) {
  TileWeights weights;
  if (request.paint != nullptr) {
    weights.groups = request.after ? &request.paint->after : &request.paint->saved;
    for (const PaintGroup& group : request.paint->groups) weights.of_group.push_back(group.weight);
    if (weights.groups->size() != request.tiles->size()) weights.groups = nullptr;
  }
  PaintedLayout painted{request,
                        layout_tiles(*request.tiles, request.slice, request.view, weights)};
  TileFills fills(request);
  painted.fills.reserve(painted.layout.quads.size());
  for (const TileQuad& quad : painted.layout.quads) painted.fills.push_back(fills.of(quad.tile));
  painted.pixels.resize(painted.layout.raster.size(), 0);
  for (std::size_t i = 0; i < painted.pixels.size(); ++i) {
    if (painted.layout.raster[i] == 0) continue;
    std::uint32_t tile = painted.layout.raster[i] - 1;
    bool bad = request.tiles->status(tile) == TileStatus::kBad;
    painted.pixels[i] = bad ? request.colouring.palette.bad : fills.of(tile);
    if (bad && painted.bad_pixels.size() < kMaxBadPixels)
      painted.bad_pixels.push_back(static_cast<std::uint32_t>(i));
  }
  painted.layout.raster = {};
  painted.has_pixels = !painted.pixels.empty();
  return painted;
}

const PaintedLayout* LayoutCache::get(int slot, const TileRequest& request) {
  auto found = slots_.find(slot);
  if (found == slots_.end() || !same_request(found->second.request, request))
    found = slots_.insert_or_assign(slot, paint_layout(request)).first;
  return &found->second;
}

}  // namespace shw
