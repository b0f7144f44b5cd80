// An executor on a GPU: the same bytes and the same fingerprint as the CPU's. A machine without a
// GPU, or without a driver, is a normal one: it is told so in words.
#pragma once

#include <memory>

#include "core/exec/device.h"
#include "core/exec/executor.h"

namespace shw {

// As core/exec/device.h asks for them; what `open` answers is cuda_executor().
Gpus cuda_gpus();

// For one thread. What it takes on the device grows with the slabs that it is given.
Result<std::unique_ptr<Executor>> cuda_executor(int device);

}  // namespace shw
