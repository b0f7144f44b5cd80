// How ranks of tensor parallelism hold a tensor, where names or shapes tell it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/tensor/shape.h"

namespace shw {

enum class TensorCut : std::uint8_t {
  kUnknown,     // nothing tells it
  kReplicated,  // the same on every rank
  kRows,        // axis 0
  kGatedRows,   // axis 0, of two halves: gate and up, each cut by itself
  kColumns,     // axis 1
};

// Which boxes of the whole a rank's part is, and the shape of the whole.
struct CutPart {
  Extents shape;
  std::vector<Box> boxes;
};
// Nothing where a part of that shape cannot be cut so.
std::optional<CutPart> part_of_cut(TensorCut cut, const Extents& local, std::uint32_t rank,
                                   std::uint32_t ranks);

}  // namespace shw
