// Works out again what a result should contain, from its source and the plan in its certificate. It
// trusts nothing else of the certificate and shares no code with the run that made the result:
// boxes are read from both sides and compared.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/run_limits.h"
#include "core/facts/storage/filled.h"
#include "core/model/checkpoint.h"
#include "core/repair/proof/certificate.h"
#include "core/repair/proof/mismatch.h"

namespace shw {

struct ExpectedResult {
  // Reasons why it cannot be that result, found without reading an item: tensors, shapes, dtypes,
  // tiles. Do not call `compare` if there are any.
  std::vector<std::string> contradictions = {};
  FilledRecord lost = {};  // elements whose saved value is lost
  // By FQN: number of elements that no tile of the source covers and that the plan does not change.
  std::map<std::string, std::int64_t> holes = {};
  std::vector<std::string> dropped = {};             // FQNs of source entries that the result lacks
  std::int64_t trimmed = 0;                          // elements that were cut off
  std::map<std::string, std::int64_t> padding = {};  // TensorCertificate::padding, if not 0
  std::set<std::string> cast = {};                   // tensors whose values were rounded
  std::vector<std::string> words = {};               // text of the steps
  std::vector<std::string> others = {};              // other checkpoints that elements come from
  // Compares one chunk of the result; an error if it cannot be compared. Thread-safe.
  std::function<Result<ComparedTile>(ChunkId, Progress*)> compare = {};
  // Compares non-tensor entries, which reads their items; the inner error is a contradiction.
  std::function<Result<std::optional<Error>>()> objects = {};
};

// What to compare, and how much memory all threads together may use for items that are decoded
// whole.
struct SourceComparisonInputs {
  std::shared_ptr<const Checkpoint> source;
  const Checkpoint& result;
  std::uint64_t memory = kDefaultMemory;
  // Memory for each side that a thread reads: source, result, and what lost elements are filled
  // from.
  std::uint64_t memory_of_side() const;
};

// The error explains why the plan cannot be applied to this source.
Result<ExpectedResult> expected_of(const Certificate& certificate,
                                   const SourceComparisonInputs& against, Progress* progress);

// "w in __0_0.distcp: is not a tensor"
std::string error_with_place_text(const Error& error);

}  // namespace shw
