#include "core/facts/reference/tile_pattern.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/words.h"
#include "core/tensor/block_orders.h"

namespace shw {
namespace {

// A grid of equal tiles in row-major order, with the moves between
// cells.
struct TileGrid {
  Extents counts;
  std::vector<std::int64_t>
      recorded_cell_of_tile;  // by correct cell: the cell where its tile is recorded
};

std::optional<TileGrid> grid_of(const TilePlaces& places, const Extents& shape) {
  if (places.moves.empty()) return std::nullopt;
  const Extents& tile = places.moves.front().found.sizes;
  TileGrid grid;
  std::int64_t cells = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] % tile[d] != 0) return std::nullopt;
    grid.counts.push_back(shape[d] / tile[d]);
    cells *= grid.counts.back();
  }
  if (cells != places.tiles) return std::nullopt;
  for (std::int64_t cell = 0; cell < cells; ++cell) grid.recorded_cell_of_tile.push_back(cell);
  auto cell_of = [&](const Box& box) {
    std::int64_t cell = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (box.sizes[d] != tile[d] || box.offsets[d] % tile[d] != 0) return std::int64_t{-1};
      cell = cell * grid.counts[d] + box.offsets[d] / tile[d];
    }
    return cell;
  };
  for (const TileMove& move : places.moves) {
    std::int64_t to = cell_of(move.found), from = cell_of(move.recorded);
    if (to < 0 || from < 0 || from >= cells) return std::nullopt;
    grid.recorded_cell_of_tile[static_cast<std::size_t>(to)] = from;
  }
  return grid;
}

Extents coordinates(std::int64_t cell, const Extents& counts) {
  Extents at(counts.size());
  for (std::size_t d = counts.size(); d-- > 0; cell /= counts[d]) at[d] = cell % counts[d];
  return at;
}

// `expected` maps coordinates of a correct cell to the recorded cell.
template <class Expected>
bool matches_permutation(const TileGrid& grid, Expected expected) {
  for (std::size_t cell = 0; cell < grid.recorded_cell_of_tile.size(); ++cell) {
    Extents at = coordinates(static_cast<std::int64_t>(cell), grid.counts);
    if (coordinates(grid.recorded_cell_of_tile[cell], grid.counts) != expected(at)) return false;
  }
  return true;
}

std::optional<TilePattern> pattern_of_exchanged_dims(const TileGrid& grid) {
  for (std::size_t a = 0; a < grid.counts.size(); ++a) {
    for (std::size_t b = a + 1; b < grid.counts.size(); ++b) {
      if (grid.counts[a] < 2 || grid.counts[a] != grid.counts[b]) continue;
      bool exchanged = matches_permutation(grid, [&](Extents at) {
        std::swap(at[a], at[b]);
        return at;
      });
      if (!exchanged) continue;
      return TilePattern{
          "grid-transposed",
          fmt::format(
              "in a grid of {} chunks dims {} and {} are swapped: chunk (i, j) is at (j, i)",
              to_text(grid.counts), a, b)};
    }
  }
  return std::nullopt;
}

// Tiles enumerated along another axis first.
std::optional<TilePattern> pattern_of_other_tile_order(const TileGrid& grid) {
  auto cells = static_cast<std::int64_t>(grid.recorded_cell_of_tile.size());
  for (std::int64_t rows = 2; rows <= cells / 2; ++rows) {
    if (!is_grid_transpose(grid.recorded_cell_of_tile, rows)) continue;
    return TilePattern{
        "axes-transposed",
        fmt::format(
            "the chunks are numbered along the axes of a mesh of {} x {} in the wrong order", rows,
            cells / rows)};
  }
  return std::nullopt;
}

std::optional<TilePattern> pattern_along_one_dim(const TileGrid& grid) {
  for (std::size_t d = 0; d < grid.counts.size(); ++d) {
    std::int64_t count = grid.counts[d];
    auto with = [&](auto place) {
      return matches_permutation(grid, [&](Extents at) {
        at[d] = place(at[d]);
        return at;
      });
    };
    if (count > 2 && with([&](std::int64_t at) { return count - 1 - at; }))
      return TilePattern{"reversed",
                         fmt::format("the chunks are in reverse order along dim {}", d)};
    for (std::int64_t by = 1; by < count; ++by) {
      if (with([&](std::int64_t at) { return (at + by) % count; }))
        return TilePattern{"rotated",
                           fmt::format("every chunk is shifted by {} along dim {}, with wraparound",
                                       plural(static_cast<std::size_t>(by), "place"), d)};
    }
  }
  return std::nullopt;
}

}  // namespace

TilePattern pattern_of(const TilePlaces& places, const Extents& shape) {
  if (places.moves.size() == 2) return {"two-tiles", "two chunks are swapped"};
  if (auto grid = grid_of(places, shape)) {
    if (auto pattern = pattern_of_exchanged_dims(*grid)) return *pattern;
    if (auto pattern = pattern_along_one_dim(*grid)) return *pattern;
    if (auto pattern = pattern_of_other_tile_order(*grid)) return *pattern;
  }
  return {"unknown",
          "chunks are at each other's positions, in an order that matches no known cause"};
}

std::optional<BlockOrder> block_order_from_tile_places(const TilePlaces& places,
                                                       const Extents& shape) {
  auto grid = grid_of(places, shape);
  if (!grid) return std::nullopt;
  auto is_cut = [](std::int64_t count) { return count > 1; };
  if (std::count_if(grid->counts.begin(), grid->counts.end(), is_cut) != 1) return std::nullopt;
  auto dim = static_cast<std::size_t>(
      std::find_if(grid->counts.begin(), grid->counts.end(), is_cut) - grid->counts.begin());
  return BlockOrder{dim, shape[dim] / grid->counts[dim], grid->recorded_cell_of_tile};
}

}  // namespace shw
