// Tensors of which only the name is known: an index places them in a file that cannot be read.
#pragma once

#include <span>

#include "core/model/checkpoint.h"

namespace shw {

// Records that belong to no chunk, of formats without an item of their own for each tensor: what
// such a record names is not there. Of torch's they are a finding (storage-dangling) instead.
inline std::span<const StrayRecord> named_only(const Checkpoint& checkpoint) {
  return checkpoint.encoding() == Encoding::kRaw ? checkpoint.strays()
                                                 : std::span<const StrayRecord>{};
}

}  // namespace shw
