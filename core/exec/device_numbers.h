// Counts what elements are like on what makes elements (device.h): the CPU, or a GPU where there is
// one. The sums are the same either way, and where a GPU fails after any slab.
#pragma once

#include <cstddef>
#include <span>

#include "core/exec/device.h"
#include "core/tensor/number_counter.h"

namespace shw {

// As choose_executors(): `kAuto` takes a GPU only where counting is predicted to take less time
// there, with the way to it.
Result<Executors> choose_counters(const DeviceWish& wish, std::span<const NumberLoad> loads);

struct CounterLimits {
  // What goes to a device at a time: two of these a thread, and as much memory of the device.
  std::size_t slab_bytes = std::size_t{16} << 20;
  // Of all that is counted together: below it a core is done before a kernel has begun.
  std::size_t least_bytes = std::size_t{1} << 20;
};

// Counters of a run, one a thread; where no GPU is taken, those of the CPU.
MakeNumberCounter number_counters(const Executors& executors, const CounterLimits& limits = {});

}  // namespace shw
