#include "core/tiles/slice.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

namespace shw {

TiledTensor saved_tiling(const Checkpoint& checkpoint, TensorId tensor) {
  TiledTensor tiling{copy_of(checkpoint.shape(tensor)), {}};
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    // A chunk of another rank cannot be drawn; a finding names it.
    if (checkpoint.offsets(chunk).size() != tiling.shape.size() ||
        checkpoint.sizes(chunk).size() != tiling.shape.size())
      continue;
    tiling.tiles.push_back({box_of(checkpoint, chunk), checkpoint.writer(chunk)});
  }
  return tiling;
}

namespace {

std::vector<std::size_t> cuts_of(const TiledTensor& tiling) {
  std::vector<std::size_t> cuts(tiling.shape.size(), 0);
  for (std::size_t d = 0; d < cuts.size(); ++d) {
    std::set<std::int64_t> starts;
    for (const RankTile& tile : tiling.tiles) starts.insert(tile.box.offsets[d]);
    cuts[d] = starts.size();
  }
  return cuts;
}

// Dimensions by priority for display.
std::vector<std::size_t> dims_by_display_priority(const TiledTensor& saved,
                                                  const TiledTensor* expected) {
  std::vector<std::size_t> cuts = cuts_of(saved);
  bool comparable = expected != nullptr && expected->shape.size() == saved.shape.size();
  std::vector<std::size_t> dims(saved.shape.size());
  for (std::size_t d = 0; d < dims.size(); ++d) dims[d] = d;
  auto differs = [&](std::size_t d) { return comparable && saved.shape[d] != expected->shape[d]; };
  std::stable_sort(dims.begin(), dims.end(), [&](std::size_t a, std::size_t b) {
    if (differs(a) != differs(b)) return differs(a);
    if (cuts[a] != cuts[b]) return cuts[a] > cuts[b];
    return a > b;
  });
  return dims;
}

}  // namespace

Slice choose_slice(const TiledTensor& saved, const TiledTensor* expected) {
  Slice slice{-1, -1, Extents(saved.shape.size(), 0)};
  std::vector<std::size_t> dims = dims_by_display_priority(saved, expected);
  if (dims.size() == 1) slice.row = static_cast<int>(dims[0]);
  if (dims.size() >= 2) {
    slice.row = static_cast<int>(std::min(dims[0], dims[1]));
    slice.column = static_cast<int>(std::max(dims[0], dims[1]));
  }
  return slice;
}

std::optional<Slice> overview_slice(const TiledTensor& saved, const Slice& slice) {
  std::vector<std::size_t> cuts = cuts_of(saved);
  std::optional<std::size_t> across;
  for (std::size_t d = 0; d < cuts.size(); ++d) {
    if (slice.shows(d) || cuts[d] < 2) continue;
    if (!across || cuts[d] > cuts[*across]) across = d;
  }
  if (!across) return std::nullopt;
  return Slice{slice.row, static_cast<int>(*across), Extents(saved.shape.size(), 0)};
}

TileSlice cut(const TiledTensor& tiling, const Slice& slice, std::size_t limit) {
  TileSlice made;
  auto extent = [&](int dim) {
    auto d = static_cast<std::size_t>(dim);
    return dim >= 0 && d < tiling.shape.size() ? tiling.shape[d] : 1;
  };
  made.rows = extent(slice.row);
  made.columns = extent(slice.column);
  for (const RankTile& tile : tiling.tiles) {
    bool inside = true;
    for (std::size_t d = 0; d < tiling.shape.size() && inside; ++d) {
      if (slice.shows(d)) continue;
      std::int64_t at = d < slice.at.size() ? slice.at[d] : 0;
      // Subtracts instead of adding, because a hostile offset may be 2^62.
      inside = tile.box.offsets[d] <= at && at - tile.box.offsets[d] < tile.box.sizes[d];
    }
    if (!inside) continue;
    if (made.tiles.size() == limit) {
      ++made.hidden;
      continue;
    }
    auto span = [&](int dim, std::int64_t end, std::int64_t& from, std::int64_t& to) {
      auto d = static_cast<std::size_t>(dim);
      std::int64_t offset = dim >= 0 ? tile.box.offsets[d] : 0;
      std::int64_t size = dim >= 0 ? tile.box.sizes[d] : 1;
      from = std::clamp<std::int64_t>(offset, 0, std::max<std::int64_t>(end, 0));
      to = from + std::clamp<std::int64_t>(size, 0, std::max<std::int64_t>(end, 0) - from);
    };
    SliceTile flat{};
    flat.writer = tile.writer;
    span(slice.row, made.rows, flat.top, flat.bottom);
    span(slice.column, made.columns, flat.left, flat.right);
    if (flat.top < flat.bottom && flat.left < flat.right) made.tiles.push_back(flat);
  }
  return made;
}

std::string to_text(const Slice& slice) {
  std::string text;
  auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (slice.row >= 0) add(fmt::format("rows dim {}", slice.row));
  if (slice.column >= 0) add(fmt::format("columns dim {}", slice.column));
  for (std::size_t d = 0; d < slice.at.size(); ++d) {
    if (slice.shows(d)) continue;
    add(fmt::format("at dim {} = {}", d, slice.at[d]));
  }
  return text;
}

}  // namespace shw
