#include "core/tiles/slice.h"

#include <algorithm>
#include <map>
#include <set>

namespace shw {

LaidTensor saved_tiling(const Checkpoint& checkpoint, TensorId tensor) {
  LaidTensor tiling{copy_of(checkpoint.shape(tensor)), {}};
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    // A chunk of another rank cannot be drawn; the findings name it.
    if (checkpoint.offsets(chunk).size() != tiling.shape.size() ||
        checkpoint.sizes(chunk).size() != tiling.shape.size())
      continue;
    tiling.tiles.push_back({{copy_of(checkpoint.offsets(chunk)), copy_of(checkpoint.sizes(chunk))},
                            checkpoint.writer(chunk)});
  }
  return tiling;
}

namespace {

std::vector<std::size_t> cuts_of(const LaidTensor& tiling) {
  std::vector<std::size_t> cuts(tiling.shape.size(), 0);
  for (std::size_t d = 0; d < cuts.size(); ++d) {
    std::set<std::int64_t> starts;
    for (const LaidTile& tile : tiling.tiles) starts.insert(tile.box.offsets[d]);
    cuts[d] = starts.size();
  }
  return cuts;
}

// Dimensions in the order in which they deserve to be seen.
std::vector<std::size_t> ranked_dims(const LaidTensor& saved, const LaidTensor* expected) {
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

SliceView choose_view(const LaidTensor& saved, const LaidTensor* expected) {
  SliceView view{{}, {}, Extents(saved.shape.size(), 0)};
  std::vector<std::size_t> dims = ranked_dims(saved, expected);
  if (dims.size() == 1) view.row_dim = dims[0];
  if (dims.size() >= 2) {
    view.row_dim = std::min(dims[0], dims[1]);
    view.column_dim = std::max(dims[0], dims[1]);
  }
  return view;
}

std::optional<SliceView> overview_of(const LaidTensor& saved, const SliceView& view) {
  std::vector<std::size_t> cuts = cuts_of(saved);
  std::optional<std::size_t> across;
  for (std::size_t d = 0; d < cuts.size(); ++d) {
    if (d == view.row_dim || d == view.column_dim || cuts[d] < 2) continue;
    if (!across || cuts[d] > cuts[*across]) across = d;
  }
  if (!across) return std::nullopt;
  return SliceView{view.row_dim, across, Extents(saved.shape.size(), 0)};
}

TileSlice cut(const LaidTensor& tiling, const SliceView& view, std::size_t limit) {
  TileSlice slice;
  auto extent = [&](std::optional<std::size_t> dim) {
    return dim && *dim < tiling.shape.size() ? tiling.shape[*dim] : 1;
  };
  slice.rows = extent(view.row_dim);
  slice.columns = extent(view.column_dim);
  for (const LaidTile& tile : tiling.tiles) {
    bool inside = true;
    for (std::size_t d = 0; d < tiling.shape.size() && inside; ++d) {
      if (d == view.row_dim || d == view.column_dim) continue;
      std::int64_t at = d < view.at.size() ? view.at[d] : 0;
      // No sum: a hostile offset may be 2^62.
      inside = tile.box.offsets[d] <= at && at - tile.box.offsets[d] < tile.box.sizes[d];
    }
    if (!inside) continue;
    if (slice.tiles.size() == limit) {
      ++slice.hidden;
      continue;
    }
    auto span = [&](std::optional<std::size_t> dim, std::int64_t end, std::int64_t& from,
                    std::int64_t& to) {
      std::int64_t offset = dim ? tile.box.offsets[*dim] : 0;
      std::int64_t size = dim ? tile.box.sizes[*dim] : 1;
      from = std::clamp<std::int64_t>(offset, 0, std::max<std::int64_t>(end, 0));
      to = from + std::clamp<std::int64_t>(size, 0, std::max<std::int64_t>(end, 0) - from);
    };
    SliceTile flat{};
    flat.writer = tile.writer;
    span(view.row_dim, slice.rows, flat.top, flat.bottom);
    span(view.column_dim, slice.columns, flat.left, flat.right);
    if (flat.top < flat.bottom && flat.left < flat.right) slice.tiles.push_back(flat);
  }
  return slice;
}

std::string to_text(const SliceView& view) {
  std::string text;
  auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (view.row_dim) add("rows dim " + std::to_string(*view.row_dim));
  if (view.column_dim) add("columns dim " + std::to_string(*view.column_dim));
  for (std::size_t d = 0; d < view.at.size(); ++d) {
    if (d == view.row_dim || d == view.column_dim) continue;
    add("at dim " + std::to_string(d) + " = " + std::to_string(view.at[d]));
  }
  return text;
}

}  // namespace shw
