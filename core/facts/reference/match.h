// Matches pieces (rows, chunks, tensors) with places of the reference: by similarity, where
// training has changed all bytes, and by equal contents.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/tensor/block_orders.h"

namespace shw {

struct BestMatch {
  std::size_t place = 0;
  // Best similarity minus the second best one, or minus 0 if all others are negative.
  double margin = 0;
};
inline constexpr double kNoMatch = -std::numeric_limits<double>::infinity();

// The most similar of places [0, places). `similarity(place)` is at most 1, or kNoMatch.
template <class Similarity>
BestMatch best_match(std::size_t places, Similarity similarity) {
  BestMatch best;
  double first = -2, second = 0;
  for (std::size_t place = 0; place < places; ++place) {
    const double alike = similarity(place);
    if (alike > first) {
      second = std::max(second, first);
      first = alike;
      best.place = place;
    } else {
      second = std::max(second, alike);
    }
  }
  best.margin = first - second;
  return best;
}

// The place of each piece.
struct Matching {
  std::vector<std::size_t> place_of;
  double margin = 2;  // the least of all pieces

  void add(const BestMatch& best) {
    place_of.push_back(best.place);
    margin = std::min(margin, best.margin);
  }
  // True if each place has one piece and some pieces are out of place.
  bool is_permuted_matching() const {
    if (!is_permutation_of_indices(place_of)) return false;
    for (std::size_t i = 0; i < place_of.size(); ++i) {
      if (place_of[i] != i) return true;
    }
    return false;
  }
};

// Matches standardised rows (likeness.h) with those of the reference by correlation; only rows of
// equal `kind` may be exchanged, and a row without others of its kind stays. nullopt unless every
// row matches exactly one place by required_margin() and some rows are out of place.
std::optional<Matching> match_by_correlation(std::vector<std::vector<float>> rows,
                                             std::vector<std::vector<float>> places,
                                             const std::vector<std::size_t>& kinds);

// Finds places by their contents.
template <class Content, class Place = std::size_t>
class PlacesByContent {
 public:
  void add(Content content, Place place) {
    auto [group, is_new] = last_.try_emplace(std::move(content), kNone);
    entries_.push_back({std::move(place), group->second});
    group->second = static_cast<std::uint32_t>(entries_.size() - 1);
  }
  bool has(const Content& content) const { return last_.contains(content); }
  // The only place with this content; nullopt if no place or several places have it.
  std::optional<Place> only(const Content& content) const {
    const Entry* entry = last_entry(content);
    return entry != nullptr && entry->before == kNone ? std::optional(entry->place) : std::nullopt;
  }
  // The last added place that was not taken.
  std::optional<Place> last(const Content& content) const {
    const Entry* entry = last_entry(content);
    return entry != nullptr ? std::optional(entry->place) : std::nullopt;
  }
  // Like last(); each place is returned once.
  std::optional<Place> take(const Content& content) {
    const Entry* entry = last_entry(content);
    if (entry == nullptr) return std::nullopt;
    last_[content] = entry->before;
    return entry->place;
  }

 private:
  static constexpr bool kIsHashed = requires(const Content& one) { std::hash<Content>{}(one); };
  static constexpr std::uint32_t kNone = UINT32_MAX;
  // Entries of equal content are linked, because most contents have one place.
  struct Entry {
    Place place;
    std::uint32_t before;
  };
  const Entry* last_entry(const Content& content) const {
    const auto group = last_.find(content);
    return group == last_.end() || group->second == kNone ? nullptr : &entries_[group->second];
  }

  std::conditional_t<kIsHashed, std::unordered_map<Content, std::uint32_t>,
                     std::map<Content, std::uint32_t>>
      last_;
  std::vector<Entry> entries_;
};

}  // namespace shw
