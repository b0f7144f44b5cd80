// What a result should hold, worked out anew from its source and the plan that its certificate
// keeps. Nothing else of the certificate is believed, and nothing of how the result was made is
// used: boxes are read on both sides and held against each other.
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
  // Why it cannot be that result, told without reading an item: tensors, shapes, dtypes, tiles.
  // Where there are any, `compare` is not to be called.
  std::vector<std::string> contradictions = {};
  FilledRecord lost = {};  // elements whose own value is gone
  // Elements of a tensor that nothing was planned for and that lie in no tile of the source.
  std::map<std::string, std::int64_t> holes = {};
  std::vector<std::string> dropped = {};  // entries of the source that are not there any more
  std::int64_t trimmed = 0;               // elements that were cut off
  std::map<std::string, std::int64_t> padding =
      {};                                // TensorCertificate::padding, where it is not 0
  std::set<std::string> cast = {};       // tensors whose values were rounded
  std::vector<std::string> words = {};   // what was done
  std::vector<std::string> others = {};  // checkpoints beside the source that elements come from
  // One chunk of the result. An error where it cannot be told. For any number of threads.
  std::function<Result<ComparedTile>(ChunkId, Progress*)> compare = {};
  // An entry that is no tensor and is not as it should be, which is one more contradiction: their
  // items are read.
  std::function<Result<std::optional<Error>>()> objects = {};
};

// What is held against each other, and what may be taken of memory for items that are decoded
// whole, by all threads together.
struct AgainstSource {
  std::shared_ptr<const Checkpoint> source;
  const Checkpoint& result;
  std::uint64_t memory = kDefaultMemory;
  // Of each side that a thread reads: source, result, and what lost elements are filled from.
  std::uint64_t memory_of_side() const;
};

// An error says why the plan cannot be followed on this source.
Result<ExpectedResult> expected_of(const Certificate& certificate, const AgainstSource& against,
                                   Progress* progress);

// "w in __0_0.distcp: is no tensor"
std::string words_about(const Error& error);

}  // namespace shw
