// Launches the kernels for the tables of a slab: each kernel once, for any number of jobs.
#pragma once

#include <cuda_runtime.h>

#include "core/tensor/fingerprint.h"
#include "gpu/slab_tables.h"

namespace shw {

// A slab on the device; input and output are 256-byte aligned.
struct DeviceSlab {
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  const DeviceJob* jobs = nullptr;
  const Item* items = nullptr;       // of one kernel
  Fingerprint* sums = nullptr;       // of a scan: one per item
  std::uint64_t* numbers = nullptr;  // count tables, initially zero
};

// Launches a kernel that writes elements, for `count` items.
cudaError_t launch_tiles(Kernel kernel, const DeviceSlab& slab, std::uint32_t count,
                         cudaStream_t stream);
// Launches a fingerprint kernel.
cudaError_t launch_fingerprint(Kernel kernel, const DeviceSlab& slab, std::uint32_t count,
                               cudaStream_t stream);
// Launches a counting kernel.
cudaError_t launch_statistics(Kernel kernel, const DeviceSlab& slab, std::uint32_t count,
                              cudaStream_t stream);
// Launches the kernel by its kind.
cudaError_t launch(Kernel kernel, const DeviceSlab& slab, std::uint32_t count, cudaStream_t stream);

// The kernels that launch_tiles selects from.
cudaError_t launch_rows(Kernel kernel, const DeviceSlab& slab, std::uint32_t count,
                        cudaStream_t stream);
cudaError_t launch_transpose(Kernel kernel, const DeviceSlab& slab, std::uint32_t count,
                             cudaStream_t stream);
cudaError_t launch_transpose_each(Kernel kernel, const DeviceSlab& slab, std::uint32_t count,
                                  cudaStream_t stream);
cudaError_t launch_interleave(Kernel kernel, const DeviceSlab& slab, std::uint32_t count,
                              cudaStream_t stream);
cudaError_t launch_convert(Kernel kernel, const DeviceSlab& slab, std::uint32_t count,
                           cudaStream_t stream);
cudaError_t launch_elements(const DeviceSlab& slab, std::uint32_t count, cudaStream_t stream);

// Launches one block per item.
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
