// Holds two checkpoints against each other, whatever their formats and tiles.
//
//   match     names; shapes, dtypes and tiles of those that both have
//   values    with --data: every element of both (value_pass.h), copies (replicas.h), entries
//             (entries.h), and the fingerprints of names that one has alone (fingerprints.h)
//   verdict   "different" where one thing is; "same" only where every byte of both was held against
//             the other's, or is the very same byte of the same file; else "undecided"
#pragma once

#include <cstdint>
#include <memory>

#include "core/base/progress.h"
#include "core/base/run_limits.h"
#include "core/compare/difference.h"
#include "core/model/checkpoint.h"

namespace shw {

struct CompareOptions {
  bool data = false;
  std::uint64_t memory = kDefaultMemory;
};

// Errors: cancellation; unreadable data is part of the result.
Result<CheckpointDifference> compare_checkpoints(const Checkpoint& a, const Checkpoint& b,
                                                 const CompareOptions& options, Progress* progress);

}  // namespace shw
