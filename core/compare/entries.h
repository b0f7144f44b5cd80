// Entries that are no tensors, held against each other without executing anything.
#pragma once

#include <vector>

#include "core/base/progress.h"
#include "core/compare/difference.h"
#include "core/facts/storage/filled.h"
#include "core/model/checkpoint.h"

namespace shw {

// Those that differ, or of which nobody can tell. Without `data` only what stands in the metadata
// itself is read; `left_open` counts entries of both whose values were not.
struct EntriesSeen {
  std::vector<EntryDifference> entries;
  std::uint64_t left_open = 0;
};
Result<EntriesSeen> compare_entries(const Checkpoint& a, const FilledReport& filled_a,
                                    const Checkpoint& b, const FilledReport& filled_b, bool data,
                                    Progress* progress);

}  // namespace shw
