// Two-dimensional slices of a tensor's tiling, for the map in the terminal and in
// reports.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/checkpoint.h"
#include "core/tensor/shape.h"

namespace shw {

struct RankTile {  // a box and the rank that wrote it or should hold it
  Box box;
  std::optional<std::uint32_t> writer;
};

// What the pictures of one tensor show, at full rank.
struct TiledTensor {
  Extents shape;
  std::vector<RankTile> tiles;
};
TiledTensor saved_tiling(const Checkpoint& checkpoint, TensorId tensor);

struct SliceTile {
  std::int64_t top = 0, left = 0, bottom = 0, right = 0;  // half-open
  std::optional<std::uint32_t> writer;
};

struct TileSlice {
  std::int64_t rows = 1, columns = 1;
  std::vector<SliceTile> tiles;
  std::size_t hidden = 0;  // number of tiles omitted above the limit
};

// A two-dimensional view of a tensor: one dim vertical, one horizontal, the others fixed.
struct Slice {
  int row = -1;     // vertical dim; -1: none (scalar, or a single dim)
  int column = -1;  // horizontal dim; -1: none
  Extents at;       // position along the other dims
  bool shows(std::size_t dim) const {
    return static_cast<int>(dim) == row || static_cast<int>(dim) == column;
  }
  friend bool operator==(const Slice&, const Slice&) = default;
};

// Selects two dimensions in which saved and expected tiling differ, else those with the most
// splits; ties prefer later dims.
Slice choose_slice(const TiledTensor& saved, const TiledTensor* expected);
// The second picture for tensors of rank 3 and more: the most split dimension that `slice` does not
// show, against the row dimension. nullopt if no such dimension is split.
std::optional<Slice> overview_slice(const TiledTensor& saved, const Slice& slice);
TileSlice cut(const TiledTensor& tiling, const Slice& slice, std::size_t limit = 4096);

// Formats as "rows dim 1, columns dim 2, at dim 0 = 17".
std::string to_text(const Slice& slice);

}  // namespace shw
