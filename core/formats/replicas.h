// Copies of one chunk written by several ranks. Loading uses one and ignores the others, so they
// must be equal before statements about "the" values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/base/team.h"
#include "core/model/checkpoint.h"

namespace shw {

// How a copy differs from its chunk, judged by bytes; empty if equal; an error if one cannot be
// read.
Result<std::string> mismatch_of(const Checkpoint& checkpoint, const Replica& replica,
                                Progress* progress);

// By tensor, why its copies do not settle what it holds: one is damaged, they differ, or one cannot
// be read. The worst last.
struct ReplicaMismatch {
  enum class Kind : std::uint8_t { kUnread, kDiffers, kDamaged };
  Kind kind = Kind::kUnread;
  std::string words;
};
// A team compares each copy once.
Result<std::map<TensorId, ReplicaMismatch>> doubtful_replicas(const Checkpoint& checkpoint,
                                                              Progress* progress,
                                                              Team* team = nullptr);

// Where each rank has an index of its own: entries that are no tensors and of which another rank
// did not save what the lowest one did, or cannot be read. Of those that take more than `most`
// bytes to compare together only the number is told.
struct OwnEntries {
  std::vector<std::string> differing;
  std::size_t not_compared = 0;
};
Result<OwnEntries> own_entries(const Checkpoint& checkpoint, std::uint64_t most,
                               Progress* progress);

// The same of tensors, then of other entries. What is made of the checkpoint lacks those.
Result<std::vector<std::string>> entries_of_other_ranks(const Checkpoint& checkpoint,
                                                        Progress* progress, Team* team = nullptr);

// The same without what is dropped: of that nothing is said to come along.
Result<std::vector<std::string>> left_behind(const Checkpoint& checkpoint,
                                             const std::vector<std::string>& dropped,
                                             Progress* progress);

}  // namespace shw
