// Tensors that are only named: an index places them in a file that cannot be read.
#pragma once

#include <span>

#include "core/model/checkpoint.h"

namespace shw {

// Storage records without a chunk in formats without a separate index: such a record names a
// tensor that does not exist. In formats with an index it is a finding (storage-dangling)
// instead.
inline std::span<const UnclaimedStorageRecord> index_only_tensors(const Checkpoint& checkpoint) {
  return checkpoint.format().traits.has_index ? std::span<const UnclaimedStorageRecord>{}
                                              : checkpoint.unclaimed_records();
}

}  // namespace shw
