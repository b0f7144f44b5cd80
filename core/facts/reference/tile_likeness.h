// Which tile is which where training went on since the reference was saved: no bytes are equal, and
// rows are still like themselves (spec/failures.md P19, trained models).
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace shw {

struct LikeOrder {
  std::vector<std::size_t> place_of;  // by tile: the place whose numbers are like its own
  double margin = 0;                  // the least by which a tile is more like it than any other
};

// `tiles` and `places` of one tensor are its tiles one by one, as they are here and as they are in
// the reference; tiles of one `kind` may stand for each other. Of each the same leading elements.
// Nothing unless every tile is told from all others, and some are at another's place. Likeness is
// the correlation, which a common shift or scale does not change.
std::optional<LikeOrder> order_by_likeness(const std::vector<std::vector<float>>& tiles,
                                           const std::vector<std::vector<float>>& places,
                                           const std::vector<std::size_t>& kinds);

}  // namespace shw
