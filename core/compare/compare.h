// Compares two checkpoints of any formats and tilings.
//
//   match     names; for common names shapes, dtypes and tiles
//   values    with --data: every element of both (value_pass.h), replicas (replicas.h), entries
//             (entries.h), and fingerprints of names on one side only (fingerprints.h)
//   tolerance tensors whose values differ at most by it are counted separately, not as different
//   verdict   "different" if anything differs; "same" only if every byte of both was compared or
//             is the same byte of the same file; else "undecided"
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
  std::optional<Tolerance> tolerance = {};  // smaller differences count as equal
  const ComparedNames* only = nullptr;      // null: all
};

// Errors: cancellation; unreadable data is part of the result.
Result<CheckpointDifference> compare_checkpoints(const Checkpoint& a, const Checkpoint& b,
                                                 const CompareOptions& options, Progress* progress);

}  // namespace shw
