#include "core/facts/reference/tile_jigsaw.h"

#include <algorithm>

namespace shw {
namespace {

using PlacedKinds = std::vector<std::pair<std::size_t, Box>>;

bool covers(const Box& box, const Extents& at) {
  for (std::size_t d = 0; d < at.size(); ++d) {
    if (at[d] < box.offsets[d] || at[d] >= box.offsets[d] + box.sizes[d]) return false;
  }
  return true;
}

class BoxPacker {
 public:
  BoxPacker(const Extents& shape, std::vector<Box> fixed, std::vector<TileKind> kinds,
            const Fits& fits)
      : shape_(shape), boxes_(std::move(fixed)), kinds_(std::move(kinds)), fits_(fits) {}

  bool solve() {
    if (++steps_ > kMaxSteps) return false;
    auto corner = first_uncovered_element(shape_, boxes_);
    if (!corner) return count_unplaced() == 0;
    for (std::size_t k = 0; k < kinds_.size(); ++k) {
      if (kinds_[k].tiles.empty()) continue;
      Box box{*corner, kinds_[k].sizes};
      if (!is_free(box) || !fits_(k, box)) continue;
      std::size_t tile = kinds_[k].tiles.back();
      kinds_[k].tiles.pop_back();
      boxes_.push_back(box);
      placed_.emplace_back(tile, box);
      if (solve()) return true;
      placed_.pop_back();
      boxes_.pop_back();
      kinds_[k].tiles.push_back(tile);
    }
    return false;
  }
  PlacedKinds release_placed() { return std::move(placed_); }

 private:
  std::size_t count_unplaced() const {
    std::size_t count = 0;
    for (const TileKind& kind : kinds_) count += kind.tiles.size();
    return count;
  }

  bool is_free(const Box& box) const {
    return is_inside(box.offsets, box.sizes, shape_) &&
           std::none_of(boxes_.begin(), boxes_.end(),
                        [&](const Box& other) { return intersect(box, other).has_value(); });
  }

  const Extents& shape_;
  std::vector<Box> boxes_;
  std::vector<TileKind> kinds_;
  const Fits& fits_;
  PlacedKinds placed_;
  std::size_t steps_ = 0;
};

}  // namespace

// A covered row looks equal until the nearest of its boxes ends, so whole bands are
// skipped.
std::optional<Extents> first_uncovered_element(const Extents& shape,
                                               const std::vector<Box>& boxes) {
  Extents at(shape.size(), 0);
  std::size_t last = shape.size();
  if (last-- == 0) return boxes.empty() ? std::optional(at) : std::nullopt;
  Extents band = shape;  // end of the nearest box, per dim
  while (true) {
    auto over =
        std::find_if(boxes.begin(), boxes.end(), [&](const Box& box) { return covers(box, at); });
    if (over == boxes.end()) return at;
    for (std::size_t d = 0; d < last; ++d)
      band[d] = std::min(band[d], over->offsets[d] + over->sizes[d]);
    at[last] = over->offsets[last] + over->sizes[last];
    for (std::size_t d = last; at[d] >= shape[d];) {
      if (d == 0) return std::nullopt;
      at[d--] = 0;
      at[d] = band[d];
      for (std::size_t inner = d; inner < last; ++inner) band[inner] = shape[inner];
    }
  }
}

std::optional<PlacedKinds> put_together(const Extents& shape, const std::vector<Box>& fixed,
                                        std::vector<TileKind> kinds, const Fits& fits) {
  BoxPacker jigsaw(shape, fixed, std::move(kinds), fits);
  if (!jigsaw.solve()) return std::nullopt;
  return jigsaw.release_placed();
}

}  // namespace shw
