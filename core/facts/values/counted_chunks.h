// Statistics of chunks collected while other code read them, so that a later statistics pass reads
// only the rest.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "core/model/checkpoint.h"
#include "core/tensor/statistics.h"

namespace shw {

class CountedChunks {
 public:
  explicit CountedChunks(const Checkpoint& checkpoint)
      : checkpoint_(checkpoint), has_(checkpoint.chunk_count()) {}
  CountedChunks(const CountedChunks&) = delete;
  CountedChunks& operator=(const CountedChunks&) = delete;

  // Adds all elements of a chunk, once; thread-safe.
  void add(ChunkId chunk, const StatisticsSums& sums);

  // Call after the last add().
  bool has(ChunkId chunk) const { return has_[index_of(chunk)]; }
  // Null if no chunk of the tensor was counted.
  const StatisticsSums* of(TensorId tensor) const;

 private:
  const Checkpoint& checkpoint_;
  std::mutex guard_;
  std::vector<bool> has_;
  std::map<TensorId, StatisticsSums> sums_;
};

}  // namespace shw
