// Counts value statistics on the device that computes elements (device.h): the CPU, or a GPU if
// available. The sums are equal on all devices, also if a GPU fails after any slab.
#pragma once

#include <cstddef>
#include <span>

#include "core/exec/device.h"
#include "core/tensor/number_counter.h"

namespace shw {

// As choose_executors(): `kAuto` selects a GPU only if counting there, including the transfer, is
// predicted to be faster.
Result<Executors> choose_statistics_executors(const DeviceOptions& options,
                                              std::span<const StatisticsLoad> loads);

struct CounterLimits {
  // Bytes per transfer to a device; two per thread, with as much device memory.
  std::size_t slab_bytes = std::size_t{16} << 20;
  // Total bytes below which the CPU is used: it finishes before a kernel starts.
  std::size_t least_bytes = std::size_t{1} << 20;
};

// Makes one counter per thread; CPU counters if no GPU was selected.
MakeStatisticsBackend statistics_backends(const Executors& executors,
                                          const CounterLimits& limits = {});

}  // namespace shw
