#include "core/facts/reference/match.h"

#include <cassert>

#include "core/facts/reference/likeness.h"

namespace shw {
namespace {

// Standardises all rows; clears rows whose values are all equal.
void standardise_all(std::vector<std::vector<float>>& rows) {
  for (auto& row : rows) {
    if (!standardise_to_unit_length(row)) row.clear();
  }
}

}  // namespace

std::optional<Matching> match_by_correlation(std::vector<std::vector<float>> rows,
                                             std::vector<std::vector<float>> places,
                                             const std::vector<std::size_t>& kinds) {
  assert(rows.size() == places.size() && rows.size() == kinds.size());
  standardise_all(rows);
  standardise_all(places);
  std::map<std::size_t, std::size_t> of_kind;
  for (std::size_t kind : kinds) ++of_kind[kind];
  bool is_any_unlike = false;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (of_kind[kinds[i]] == 1) continue;
    if (rows[i].empty() || places[i].size() != rows[i].size()) return std::nullopt;
    is_any_unlike = is_any_unlike || dot_product(rows[i], places[i]) < kLikeItsPlace;
  }
  if (!is_any_unlike) return std::nullopt;
  Matching out;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (of_kind[kinds[i]] == 1) {
      out.place_of.push_back(i);
      continue;
    }
    const BestMatch best = best_match(places.size(), [&](std::size_t place) {
      return kinds[place] == kinds[i] ? dot_product(rows[i], places[place]) : kNoMatch;
    });
    if (best.margin < required_margin(rows[i].size())) return std::nullopt;
    out.add(best);
  }
  return out.is_permuted_matching() ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace shw
