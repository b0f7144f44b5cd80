#include "core/facts/reference/tile_likeness.h"

#include <algorithm>
#include <cassert>

#include "core/facts/reference/likeness.h"

namespace shw {
namespace {

using Rows = std::vector<std::vector<float>>;

// Empty if a row is constant.
Rows all_standardised(Rows rows) {
  for (auto& row : rows) {
    if (!standardise(row)) row.clear();
  }
  return rows;
}

struct BestMatch {
  std::size_t place = 0;
  double margin = 0;
};

// The best match among places of the same kind, with its margin.
BestMatch likest_of(std::size_t tile, const std::vector<float>& row, const Rows& places,
                    const std::vector<std::size_t>& kinds) {
  BestMatch best{tile, -2};
  double first = -2, second = 0;  // at least 0 is required even if all others are negative
  for (std::size_t place = 0; place < places.size(); ++place) {
    if (kinds[place] != kinds[tile]) continue;
    const double likeness = product_of(row, places[place]);
    if (likeness > first) {
      second = std::max(second, first);
      first = likeness;
      best.place = place;
    } else {
      second = std::max(second, likeness);
    }
  }
  best.margin = first - second;
  return best;
}

}  // namespace

std::optional<LikeOrder> match_tiles_by_correlation(const std::vector<std::vector<float>>& tiles,
                                                    const std::vector<std::vector<float>>& places,
                                                    const std::vector<std::size_t>& kinds) {
  assert(tiles.size() == places.size() && tiles.size() == kinds.size());
  const auto here = all_standardised(tiles), there = all_standardised(places);
  bool is_any_unlike = false;
  for (std::size_t i = 0; i < here.size(); ++i) {
    const bool has_rivals = std::count(kinds.begin(), kinds.end(), kinds[i]) > 1;
    if (!has_rivals) continue;
    if (here[i].empty() || there[i].size() != here[i].size()) return std::nullopt;
    is_any_unlike = is_any_unlike || product_of(here[i], there[i]) < kLikeItsPlace;
  }
  if (!is_any_unlike) return std::nullopt;
  LikeOrder order;
  order.margin = 2;
  std::vector<bool> is_taken(here.size(), false);
  bool has_moved = false;
  for (std::size_t i = 0; i < here.size(); ++i) {
    order.place_of.push_back(i);
    if (std::count(kinds.begin(), kinds.end(), kinds[i]) == 1) continue;
    const BestMatch best = likest_of(i, here[i], there, kinds);
    if (best.margin < asked_margin(here[i].size()) || is_taken[best.place]) return std::nullopt;
    is_taken[best.place] = true;
    order.place_of.back() = best.place;
    order.margin = std::min(order.margin, best.margin);
    has_moved = has_moved || best.place != i;
  }
  return has_moved ? std::optional(std::move(order)) : std::nullopt;
}

}  // namespace shw
