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

// How a copy's bytes differ from its chunk; empty if equal; an error if one cannot be read.
Result<std::string> mismatch_of(const Checkpoint& checkpoint, const Replica& replica,
                                Progress* progress);

// Reason why the copies of a tensor do not determine its values: one is damaged, they differ, or
// one cannot be read. Kinds in ascending severity.
struct ReplicaMismatch {
  enum class Kind : std::uint8_t { kUnread, kDiffers, kDamaged };
  Kind kind = Kind::kUnread;
  std::string words;
};
// Returns the mismatches by tensor. A team compares each copy once.
Result<std::map<TensorId, ReplicaMismatch>> mismatched_replicas(const Checkpoint& checkpoint,
                                                                Progress* progress,
                                                                Team* team = nullptr);

// If each rank has its own index: non-tensor entries where another rank's value differs from the
// lowest rank's or cannot be read. Entries that take more than `most` bytes to compare in total are
// only counted.
struct RankSpecificEntries {
  std::vector<std::string> differing;
  std::size_t not_compared = 0;
};
Result<RankSpecificEntries> own_entries(const Checkpoint& checkpoint, std::uint64_t most,
                                        Progress* progress);

// Names of tensors and entries whose copies differ between ranks. A new checkpoint made from this
// one keeps only one copy.
Result<std::vector<std::string>> entries_differing_between_ranks(const Checkpoint& checkpoint,
                                                                 Progress* progress,
                                                                 Team* team = nullptr);

// The result of entries_differing_between_ranks() for one process, without names in `dropped`.
Result<std::vector<std::string>> differing_entries_left_out(const Checkpoint& checkpoint,
                                                            const std::vector<std::string>& dropped,
                                                            Progress* progress);

}  // namespace shw
