// Fallback for jobs without a special kernel: element by element, in target order.
#include "gpu/convert.cuh"

namespace shw {
namespace {

__global__ void __launch_bounds__(kRowThreads) move_elements(DeviceSlab slab) {
  __shared__ DeviceJob job;
  const Item item = slab.items[blockIdx.x];
  copy_job(job, slab.jobs[item.job]);
  for (std::uint32_t i = threadIdx.x; i < item.count; i += kRowThreads) {
    const Spot at = unit_position(job, job.ndim, item.first + i);
    store_element(slab.out + at.target, job.target_size,
                  converted_element(job, slab.in + at.source));
  }
}

}  // namespace

cudaError_t launch_elements(const DeviceSlab& slab, std::uint32_t count, cudaStream_t stream) {
  return launch_blocks(move_elements, kRowThreads, slab, count, stream);
}

cudaError_t launch_tiles(Kernel kernel, const DeviceSlab& slab, std::uint32_t count,
                         cudaStream_t stream) {
  if (kernel <= Kernel::kFill16) return launch_rows(kernel, slab, count, stream);
  if (kernel <= Kernel::kTranspose16) return launch_transpose(kernel, slab, count, stream);
  if (kernel <= Kernel::kTransposeEach8) return launch_transpose_each(kernel, slab, count, stream);
  if (kernel <= Kernel::kInterleave8) return launch_interleave(kernel, slab, count, stream);
  if (kernel <= Kernel::kChange8To8) return launch_convert(kernel, slab, count, stream);
  return launch_elements(slab, count, stream);
}

cudaError_t launch(Kernel kernel, const DeviceSlab& slab, std::uint32_t count,
                   cudaStream_t stream) {
  if (is_statistics_kernel(kernel)) return launch_statistics(kernel, slab, count, stream);
  if (is_fingerprint_kernel(kernel)) return launch_fingerprint(kernel, slab, count, stream);
  return launch_tiles(kernel, slab, count, stream);
}

}  // namespace shw
