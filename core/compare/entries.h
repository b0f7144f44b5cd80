// Compares non-tensor entries without executing their pickles.
#pragma once

#include <vector>

#include "core/base/progress.h"
#include "core/compare/difference.h"
#include "core/facts/storage/filled.h"
#include "core/model/checkpoint.h"

namespace shw {

// Entries that differ or are undecided. Without `data` only values inside the metadata are
// compared; `uncompared_count` counts common entries that were not.
struct EntryComparison {
  std::vector<EntryDifference> entries;
  std::uint64_t uncompared_count = 0;
};
Result<EntryComparison> compare_entries(const Checkpoint& a, const FilledReport& filled_a,
                                        const Checkpoint& b, const FilledReport& filled_b,
                                        bool data, Progress* progress);

}  // namespace shw
