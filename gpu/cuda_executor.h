// The executor on a GPU, with the same bytes and fingerprints as the CPU's. A machine without a GPU
// or driver is a normal case, reported as text.
#pragma once

#include <memory>

#include "core/exec/device.h"
#include "core/exec/executor.h"

namespace shw {

// The GPUs of this machine for core/exec/device.h; `open` calls cuda_executor().
Gpus cuda_gpus();

// Not thread-safe. Its device memory grows with the largest slab.
Result<std::unique_ptr<Executor>> cuda_executor(int device);

}  // namespace shw
