// One rank's part of flattened parameters, saved as the whole: FSDP and DeepSpeed ZeRO-3 flatten
// parameters, and a state dict that was not gathered holds only the rank's part.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/model/checkpoint.h"

namespace shw {

// A tensor whose shape differs from the model's; `saved` is unset if it is missing.
struct MismatchedShape {
  std::string fqn;
  Extents saved, expected;
  bool is_here = true;
};

// A sentence if the shapes show such a part; empty if they do not, or if another explanation is
// possible.
std::string flat_part_text(std::span<const MismatchedShape> shapes);

}  // namespace shw
