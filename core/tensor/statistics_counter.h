// Counts elements at memory speed: each element increments a table entry selected by its bits (1
// and 2 bytes) or by sign and exponent (wider floats); tables become sums once, at the end. Not
// thread-safe; reuse a counter, because its tables take up to 1 MiB.
#pragma once

#include <memory>

#include "core/base/bytes.h"
#include "core/tensor/statistics.h"

namespace shw {

class StatisticsCounter {
 public:
  StatisticsCounter();
  ~StatisticsCounter();
  StatisticsCounter(const StatisticsCounter&) = delete;
  StatisticsCounter& operator=(const StatisticsCounter&) = delete;

  // Starts a tensor; discards anything that was added and not taken.
  void begin(Dtype dtype);
  // Adds bytes of elements; parts may split elements.
  void add(BytesView bytes);
  void add_zeros(std::uint64_t bytes);
  // Returns the sums since begin(), which must be called again. Requires whole elements.
  StatisticsSums take();

 private:
  struct Tables;
  void add_whole(BytesView bytes);
  void add_one_by_one(BytesView bytes);

  std::unique_ptr<Tables> tables_;
};

}  // namespace shw
