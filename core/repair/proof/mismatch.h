// What holding a tile of a result against what it should be comes to: the first element that is
// another one, in words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/bytes.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace shw {

// Of each side at a time, which stay in a core's cache.
inline constexpr std::int64_t kComparedBytes = 256 << 10;
// Of what is turned: runs of the source are as long as a block has rows.
inline constexpr std::int64_t kTurnedBytes = 4 << 20;

struct Mismatch {
  Extents index = {};                     // in the tensor of the result
  std::string value = {}, expected = {};  // as text; with their bytes where the texts are the same
};

struct ComparedTile {
  std::optional<Mismatch> mismatch = {};
  // Elements as they should be whose number the dtype cannot say; those that are lost aside.
  std::int64_t out_of_range = 0;
};

// The first one of `box`, which lies in the tensor: its elements row-major, as they are there and
// as they should be. The two differ, and are as long.
Mismatch first_mismatch(Dtype dtype, const Box& box, BytesView there, BytesView expected);

}  // namespace shw
