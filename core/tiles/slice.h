// Two dimensions of a tiling, cut out of a tensor of any rank: what the terminal's map and the
// page's pictures are drawn from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/checkpoint.h"
#include "core/tensor/shape.h"

namespace shw {

struct LaidTile {  // a box with who wrote it, or should hold it
  Box box;
  std::optional<std::uint32_t> writer;
};

// Everything that the pictures of one tensor need, at full rank.
struct LaidTensor {
  Extents shape;
  std::vector<LaidTile> tiles;
};
LaidTensor saved_tiling(const Checkpoint& checkpoint, TensorId tensor);

struct SliceTile {
  std::int64_t top = 0, left = 0, bottom = 0, right = 0;  // half open
  std::optional<std::uint32_t> writer;
};

struct TileSlice {
  std::int64_t rows = 1, columns = 1;
  std::vector<SliceTile> tiles;
  std::size_t hidden = 0;  // tiles that were left out above the limit
};

// A two-dimensional look into a tensor: one dim down, one across, the others held at a position.
struct Slice {
  int row = -1;     // dim drawn downwards; -1: none (a scalar, or one dim only)
  int column = -1;  // dim drawn across; likewise
  Extents at;       // position along every dim; those of row and column are not used
  bool shows(std::size_t dim) const {
    return static_cast<int>(dim) == row || static_cast<int>(dim) == column;
  }
  friend bool operator==(const Slice&, const Slice&) = default;
};

// Two dimensions in which saved and expected differ; else those with the most cuts, the later ones
// where that is even.
Slice choose_slice(const LaidTensor& saved, const LaidTensor* expected);
// The other picture of a tensor of rank 3 and more: the dimension with the most cuts that `slice`
// does not show, across, over the row dimension. Nothing where that is cut nowhere.
std::optional<Slice> overview_of(const LaidTensor& saved, const Slice& slice);
TileSlice cut(const LaidTensor& tiling, const Slice& slice, std::size_t limit = 4096);

// "rows dim 1, columns dim 2, at dim 0 = 17"
std::string to_text(const Slice& slice);

}  // namespace shw
