// Interface for counting elements from a byte stream, on a CPU core
// (StatisticsCounter) or on a device (core/exec/device_numbers.h). All implementations
// give equal bits.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/base/bytes.h"
#include "core/base/result.h"
#include "core/tensor/statistics.h"

namespace shw {

// Not thread-safe.
class StatisticsBackend {
 public:
  virtual ~StatisticsBackend() = default;
  // Starts a tensor; discards anything that was added and not taken.
  virtual void begin(Dtype dtype) = 0;
  // Adds bytes of elements; parts may split elements.
  virtual void add(BytesView bytes) = 0;
  virtual void add_zeros(std::uint64_t bytes) = 0;
  // Returns the sums since begin(), which must be called again before the next add(). Requires that
  // whole elements were added. Errors come from the device, not from the data.
  virtual Result<StatisticsSums> take() = 0;
};

// An amount of elements of one dtype to count.
struct StatisticsLoad {
  Dtype dtype = Dtype::kUnknown;
  std::uint64_t bytes = 0;
};

using MakeStatisticsBackend = std::function<std::unique_ptr<StatisticsBackend>()>;

// A counter on one CPU core.
std::unique_ptr<StatisticsBackend> cpu_statistics_backend();

}  // namespace shw
