// Matches chunks with places in the reference if training continued after the reference was saved:
// no bytes are equal, but rows are still similar.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace shw {

struct LikeOrder {
  std::vector<std::size_t> place_of;  // by chunk: the most similar place
  double margin = 0;                  // the least margin over any other place
};

// `tiles` and `places`: leading elements of the tensor's chunks here and in the reference; only
// chunks of equal `kind` may be exchanged. nullopt unless every chunk matches exactly one place
// and some are out of place. Similarity is the correlation, which is invariant to shift and
// scale.
std::optional<LikeOrder> match_tiles_by_correlation(const std::vector<std::vector<float>>& tiles,
                                                    const std::vector<std::vector<float>>& places,
                                                    const std::vector<std::size_t>& kinds);

}  // namespace shw
