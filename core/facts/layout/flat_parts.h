// One rank's part of flattened parameters, saved as if it were the whole: FSDP and DeepSpeed ZeRO-3
// keep parameters flat, and a state dict that was not gathered has what one rank held.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/model/checkpoint.h"

namespace shw {

// A tensor that has another shape than the model's; `saved` is unset where it is not here.
struct OtherShape {
  std::string fqn;
  Extents saved, expected;
  bool is_here = true;
};

// What their shapes say of such a part, as a sentence; empty where they are none, or where more
// than one thing would explain them.
std::string flat_part_words(std::span<const OtherShape> shapes);

}  // namespace shw
