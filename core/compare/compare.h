// Holds two checkpoints against each other, whatever their formats and tiles.
//
//   match     names; shapes, dtypes and tiles of those that both have
//   values    with --data: every element of both (value_pass.h), copies (replicas.h), entries
//             (entries.h), and the fingerprints of names that one has alone (fingerprints.h)
//   tolerance values that are no further apart are no difference, and their tensor is counted apart
//   verdict   "different" where one thing is; "same" only where every byte of both was held against
//             the other's, or is the very same byte of the same file; else "undecided"
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "core/base/progress.h"
#include "core/base/run_limits.h"
#include "core/compare/difference.h"
#include "core/model/checkpoint.h"

namespace shw {

// Names that are compared, of tensors and of entries.
using ComparedNames = std::set<std::string, std::less<>>;

struct CompareOptions {
  bool data = false;
  std::uint64_t memory = kDefaultMemory;
  std::optional<Tolerance> tolerance = {};  // within it values are no difference
  const ComparedNames* only = nullptr;      // null: all
};

// Errors: cancellation; unreadable data is part of the result.
Result<CheckpointDifference> compare_checkpoints(const Checkpoint& a, const Checkpoint& b,
                                                 const CompareOptions& options, Progress* progress);

}  // namespace shw
