// What the numbers of tensors are like, in one pass over their bytes: on every core, inside one
// large tile too, and equal to the bit whatever the cores did.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/base/team.h"
#include "core/facts/values/counted_chunks.h"
#include "core/model/checkpoint.h"
#include "core/tensor/number_counter.h"
#include "core/tensor/statistics.h"

namespace shw {

// Of the elements that are there. An element that several tiles hold counts once for each of them:
// whose copy is the right one nobody knows.
struct TensorStatistics {
  std::string fqn;
  Dtype dtype = Dtype::kUnknown;
  Extents shape;
  Statistics statistics;
  std::int64_t missing = 0;         // elements of the shape in no tile
  std::int64_t unread = 0;          // in tiles that cannot be read
  std::int64_t repeated = 0;        // further copies among those that were counted or not read
  bool at_least = false;            // there may be more that is missing and repeated
  std::optional<Error> error = {};  // the first of what could not be read

  // The numbers are those of the tensor, all of it and nothing else.
  bool is_whole() const { return missing == 0 && unread == 0 && repeated == 0 && !error; }
};

// The elements of a chunk are ones of its tensor: they count.
bool has_numbers(const Checkpoint& checkpoint, ChunkId chunk);

// In the order of `tensors`. An error ends it only where somebody stopped it, or what counts
// failed. A team reads every byte once, one member each part, and all members are told the same.
// What `counted` has is not read again.
Result<std::vector<TensorStatistics>> statistics_of(
    const Checkpoint& checkpoint, std::span<const TensorId> tensors, Progress* progress,
    Team* team = nullptr, const MakeNumberCounter& counters = cpu_number_counter,
    const CountedChunks* counted = nullptr);

// What that has to count, by dtype.
std::vector<NumberLoad> loads_to_count(const Checkpoint& checkpoint,
                                       std::span<const TensorId> tensors);

}  // namespace shw
