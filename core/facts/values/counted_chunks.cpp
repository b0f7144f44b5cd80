#include "core/facts/values/counted_chunks.h"

namespace shw {

void CountedChunks::add(ChunkId chunk, const StatisticsSums& sums) {
  std::lock_guard lock(guard_);
  auto [found, is_new] = sums_.try_emplace(checkpoint_.tensor_of(chunk), sums.dtype);
  found->second += sums;
  has_[index_of(chunk)] = true;
}

const StatisticsSums* CountedChunks::of(TensorId tensor) const {
  auto found = sums_.find(tensor);
  return found == sums_.end() ? nullptr : &found->second;
}

}  // namespace shw
