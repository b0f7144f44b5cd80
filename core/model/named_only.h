// Tensors of which only the name is known: an index places them in a file that cannot be read.
#pragma once

#include <span>

#include "core/model/checkpoint.h"

namespace shw {

// Records that belong to no chunk, of formats whose data files say themselves what they hold: what
// such a record names is not there. Where an index says it, they are a finding (storage-dangling)
// instead.
inline std::span<const StrayRecord> named_only(const Checkpoint& checkpoint) {
  return checkpoint.format().traits.has_index ? std::span<const StrayRecord>{}
                                              : checkpoint.strays();
}

}  // namespace shw
