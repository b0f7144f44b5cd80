#include "core/spec/expected_tiling.h"

#include <set>

namespace shw {

TiledTensor expected_tiling(const SpecEntry& entry) {
  static constexpr std::int64_t kMostRanks = 65'536;  // with more ranks tiles are invisible
  TiledTensor tiling{entry.shape, {}};
  std::int64_t ranks = entry.mesh ? entry.mesh->size() : 0;
  bool placed =
      ranks > 0 && ranks <= kMostRanks && entry.mesh->axes.size() == entry.placements.size();
  std::set<std::pair<Extents, Extents>> seen;
  for (std::int64_t rank = 0; placed && rank < ranks; ++rank) {
    auto box = local_box(entry.shape, *entry.mesh, entry.placements, rank);
    if (!box) {
      tiling.tiles.clear();
      break;
    }
    if (is_empty(*box) || !seen.emplace(box->offsets, box->sizes).second) continue;
    tiling.tiles.push_back({std::move(*box), static_cast<std::uint32_t>(rank)});
  }
  if (tiling.tiles.empty()) tiling.tiles.push_back({whole(entry.shape), std::nullopt});
  return tiling;
}

}  // namespace shw
