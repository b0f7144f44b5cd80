// Starts the kernels that the tables of a slab ask for: one launch of each, however many jobs.
#pragma once

#include <cuda_runtime.h>

#include "core/tensor/fingerprint.h"
#include "gpu/slab_tables.h"

namespace shw {

// A slab on the device; both sides begin at multiples of 256 bytes.
struct DeviceSlab {
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  const DeviceJob* jobs = nullptr;
  const Item* items = nullptr;       // of one kernel
  Fingerprint* sums = nullptr;       // of a scan: one an item
  std::uint64_t* numbers = nullptr;  // tables, of zeros at first
};

// `count` items of a kernel that makes elements.
cudaError_t launch_tiles(Kernel kernel, const DeviceSlab& slab, std::uint32_t count,
                         cudaStream_t stream);
// Of one that adds them up.
cudaError_t launch_scan(Kernel kernel, const DeviceSlab& slab, std::uint32_t count,
                        cudaStream_t stream);
// Of one that counts.
cudaError_t launch_numbers(Kernel kernel, const DeviceSlab& slab, std::uint32_t count,
                           cudaStream_t stream);
// Whichever of them.
cudaError_t launch(Kernel kernel, const DeviceSlab& slab, std::uint32_t count, cudaStream_t stream);

// What launch_tiles deals to.
cudaError_t launch_rows(Kernel kernel, const DeviceSlab& slab, std::uint32_t count,
                        cudaStream_t stream);
cudaError_t launch_turn(Kernel kernel, const DeviceSlab& slab, std::uint32_t count,
                        cudaStream_t stream);
cudaError_t launch_turn_each(Kernel kernel, const DeviceSlab& slab, std::uint32_t count,
                             cudaStream_t stream);
cudaError_t launch_change(Kernel kernel, const DeviceSlab& slab, std::uint32_t count,
                          cudaStream_t stream);
cudaError_t launch_elements(const DeviceSlab& slab, std::uint32_t count, cudaStream_t stream);

// One kernel, a block an item.
template <class Function>
cudaError_t launch_blocks(Function* kernel, std::uint32_t threads, const DeviceSlab& slab,
                          std::uint32_t count, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(count);
  config.blockDim = dim3(threads);
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, slab);
}

}  // namespace shw
