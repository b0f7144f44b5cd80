#include "core/facts/reference/tile_likeness.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace shw {
namespace {

constexpr double kLeastMargin = 0.2;  // P19
// The correlation of unrelated rows of n elements has a standard deviation of 1 / sqrt(n): six of
// them are asked for, 0.6 with 100 elements and 0.2 with 900.
constexpr double kAskedDeviations = 6;
// A tile that is as like its own place as that is in it: then there is nothing to look for.
constexpr double kLikeItsPlace = 0.5;

// Numbers whose sum is 0 and whose squares sum to 1: a product of two is their correlation. Empty
// where all are equal, or one is not finite.
std::vector<float> standardised_row(const std::vector<float>& values) {
  double sum = 0, squares = 0;
  for (float value : values) sum += value;
  const double mean = sum / static_cast<double>(std::max<std::size_t>(1, values.size()));
  for (float value : values) squares += (value - mean) * (value - mean);
  if (!std::isfinite(squares) || squares <= 0) return {};
  std::vector<float> out;
  const double scale = 1 / std::sqrt(squares);
  for (float value : values) out.push_back(static_cast<float>((value - mean) * scale));
  return out;
}

double product_of(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * double{b[i]};
  return sum;
}

std::vector<std::vector<float>> all_standardised(const std::vector<std::vector<float>>& rows) {
  std::vector<std::vector<float>> out;
  for (const auto& row : rows) out.push_back(standardised_row(row));
  return out;
}

struct Likest {
  std::size_t place = 0;
  double margin = 0;
};

// The one place of its kind that `tile` is like, by how much more than any other.
Likest likest_of(std::size_t tile, const std::vector<float>& row,
                 const std::vector<std::vector<float>>& places,
                 const std::vector<std::size_t>& kinds) {
  Likest best{tile, -2};
  double first = -2, second = 0;  // what is unlike all others has to be like this one all the same
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

std::optional<LikeOrder> order_by_likeness(const std::vector<std::vector<float>>& tiles,
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
    const Likest best = likest_of(i, here[i], there, kinds);
    const double asked = kAskedDeviations / std::sqrt(static_cast<double>(here[i].size()));
    if (best.margin < std::max(kLeastMargin, asked) || is_taken[best.place]) return std::nullopt;
    is_taken[best.place] = true;
    order.place_of.back() = best.place;
    order.margin = std::min(order.margin, best.margin);
    has_moved = has_moved || best.place != i;
  }
  return has_moved ? std::optional(std::move(order)) : std::nullopt;
}

}  // namespace shw
