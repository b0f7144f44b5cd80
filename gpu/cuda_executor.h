// An executor on a GPU: the same bytes and the same fingerprint as the CPU's. A machine without a
// GPU, or without a driver, is a normal one: it is told so in words.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/exec/executor.h"

namespace shw {

struct CudaDevice {
  int index = 0;
  std::string name;
  std::uint64_t memory = 0;  // bytes
};

struct CudaDevices {
  std::vector<CudaDevice> devices;
  std::string none;  // why there is none; empty where there is one
};
CudaDevices cuda_devices();

// For one thread. What it takes on the device grows with the slabs that it is given.
Result<std::unique_ptr<Executor>> cuda_executor(int device);

}  // namespace shw
