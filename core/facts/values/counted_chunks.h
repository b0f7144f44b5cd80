// What the elements of chunks add up to, counted while something else read them: who asks for
// statistics afterwards reads the others alone.
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

  // All elements of a chunk, once; from several threads.
  void add(ChunkId chunk, const StatisticsSums& sums);

  // When nobody adds any more.
  bool has(ChunkId chunk) const { return has_[index_of(chunk)]; }
  // Null where no chunk of it was counted.
  const StatisticsSums* of(TensorId tensor) const;

 private:
  const Checkpoint& checkpoint_;
  std::mutex guard_;
  std::vector<bool> has_;
  std::map<TensorId, StatisticsSums> sums_;
};

}  // namespace shw
