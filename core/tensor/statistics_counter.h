// Adds up elements as they pass, as fast as their bytes come: each element goes into a table by its
// bits (1 and 2 bytes) or by sign and exponent (wider floats), and the tables become sums once, at
// the end. A counter is for one thread and kept for the next tensor: its tables take up to 1 MiB.
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

  // What was added before and not taken is forgotten.
  void begin(Dtype dtype);
  // Bytes of elements, in any parts.
  void add(BytesView bytes);
  void add_zeros(std::uint64_t bytes);
  // All since begin(), which has to be called again. The bytes were whole elements.
  StatisticsSums take();

 private:
  struct Tables;
  void add_whole(BytesView bytes);
  void add_one_by_one(BytesView bytes);

  std::unique_ptr<Tables> tables_;
};

}  // namespace shw
