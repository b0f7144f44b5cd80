// How tensor-parallel ranks split a tensor, as derived from names or shapes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/tensor/shape.h"

namespace shw {

enum class TensorSplit : std::uint8_t {
  kUnknown,     // not derivable
  kReplicated,  // equal on every rank
  kRows,        // axis 0
  kGatedRows,   // axis 0 of two halves, gate and up, each split separately
  kColumns,     // axis 1
};

// The boxes of the whole tensor that a rank's part consists of, and the shape of the whole.
struct SplitPart {
  Extents shape;
  std::vector<Box> boxes;
};
// nullopt if a part of that shape is impossible.
std::optional<SplitPart> split_part_of_rank(TensorSplit cut, const Extents& local,
                                            std::uint32_t rank, std::uint32_t ranks);

}  // namespace shw
