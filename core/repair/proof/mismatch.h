// Result of comparing a tile with its expected elements, including the first element that differs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/bytes.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace shw {

// Bytes per side that are compared at a time: they stay in a core's cache.
inline constexpr std::int64_t kComparedBytes = 256 << 10;
// Bytes per block of a transposed tile: larger, because runs in the source are as long as a block
// has rows.
inline constexpr std::int64_t kTurnedBytes = 4 << 20;

struct Mismatch {
  Extents index = {};                     // in the tensor of the result
  std::string value = {}, expected = {};  // as text; with their bytes where the texts are the same
};

struct ComparedTile {
  std::optional<Mismatch> mismatch = {};
  // Number of equal elements that the dtype cannot represent, without those that are lost.
  std::int64_t out_of_range = 0;
};

// The first differing element of `box`, which is in the tensor. Both sides are row-major and of
// equal length, and must differ.
Mismatch first_mismatch(Dtype dtype, const Box& box, BytesView there, BytesView expected);

}  // namespace shw
