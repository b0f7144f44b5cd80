// Statistics of tensors in one pass over their bytes, on all cores (also within one large chunk),
// with results that do not depend on scheduling.
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

// Statistics of the existing elements. Elements in several chunks count once per chunk, because the
// right copy is unknown.
struct TensorStatistics {
  std::string fqn;
  Dtype dtype = Dtype::kUnknown;
  Extents shape;
  Statistics statistics;
  std::int64_t missing = 0;         // elements of the shape in no chunk
  std::int64_t unread = 0;          // elements in chunks that cannot be read
  std::int64_t repeated = 0;        // additional copies among the counted or unread elements
  bool at_least = false;            // `missing` and `repeated` are lower bounds
  std::optional<Error> error = {};  // the first read error

  // True if the statistics cover exactly the tensor.
  bool is_whole() const { return missing == 0 && unread == 0 && repeated == 0 && !error; }
};

// True if the chunk's elements belong to its tensor.
bool has_numbers(const Checkpoint& checkpoint, ChunkId chunk);

// Results in the order of `tensors`. Errors: cancellation, or a failure of a counter or of the
// team. The ranks of a team read each byte once and all get equal results. Chunks in `counted` are
// not read again.
Result<std::vector<TensorStatistics>> statistics_of(
    const Checkpoint& checkpoint, std::span<const TensorId> tensors, Progress* progress,
    Team* team = nullptr, const MakeStatisticsBackend& counters = cpu_statistics_backend,
    const CountedChunks* counted = nullptr);

// Amount to count per dtype.
std::vector<StatisticsLoad> statistics_loads_by_dtype(const Checkpoint& checkpoint,
                                                      std::span<const TensorId> tensors);

}  // namespace shw
