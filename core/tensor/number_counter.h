// What counts the elements of tensors as their bytes pass, wherever it does so: on a core
// (StatisticsCounter), or on a device (core/exec/device_numbers.h). The sums are the same to the
// bit.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/base/bytes.h"
#include "core/base/result.h"
#include "core/tensor/statistics.h"

namespace shw {

// For one thread.
class NumberCounter {
 public:
  virtual ~NumberCounter() = default;
  // What was added before and not taken is forgotten.
  virtual void begin(Dtype dtype) = 0;
  // Bytes of elements, in any parts.
  virtual void add(BytesView bytes) = 0;
  virtual void add_zeros(std::uint64_t bytes) = 0;
  // All since begin(), which has to be called again. The bytes were whole elements. An error is of
  // what counts, never of what was counted.
  virtual Result<StatisticsSums> take() = 0;
};

// Bytes of elements of one dtype, which are to be counted.
struct NumberLoad {
  Dtype dtype = Dtype::kUnknown;
  std::uint64_t bytes = 0;
};

using MakeNumberCounter = std::function<std::unique_ptr<NumberCounter>()>;

// On a core of the CPU.
std::unique_ptr<NumberCounter> cpu_number_counter();

}  // namespace shw
