// Contiguous rows and constants. A thread loads eight units before it writes the first: 32 KiB in
// flight per block with 16-byte units. Three blocks fit on a multiprocessor, which hides the memory
// latency of an H200 (48 KiB needed).
#include "gpu/device.cuh"

namespace shw {
namespace {

constexpr std::uint32_t kDeep = 8;

template <int kBytes, class Spots>
__device__ __forceinline__ void copy_units(const DeviceSlab& slab, std::uint32_t count,
                                           const Spots& spots) {
  for (std::uint32_t first = threadIdx.x; first < count; first += kDeep * kRowThreads) {
    Unit<kBytes> held[kDeep];
#pragma unroll
    for (std::uint32_t i = 0; i < kDeep; ++i) {
      const std::uint32_t unit = first + i * kRowThreads;
      if (unit < count) held[i] = load_once<kBytes>(slab.in + spots(unit).source);
    }
#pragma unroll
    for (std::uint32_t i = 0; i < kDeep; ++i) {
      const std::uint32_t unit = first + i * kRowThreads;
      if (unit < count) store_once<kBytes>(slab.out + spots(unit).target, held[i]);
    }
  }
}

template <int kBytes>
__global__ void __launch_bounds__(kRowThreads) copy_rows(DeviceSlab slab) {
  __shared__ DeviceJob job;
  const Item item = slab.items[blockIdx.x];
  copy_job(job, slab.jobs[item.job]);
  for_each_unit_position(job, item,
                         [&](const auto& spots) { copy_units<kBytes>(slab, item.count, spots); });
}

template <int kBytes>
__global__ void __launch_bounds__(kRowThreads) fill_rows(DeviceSlab slab) {
  __shared__ DeviceJob job;
  const Item item = slab.items[blockIdx.x];
  copy_job(job, slab.jobs[item.job]);
  const auto unit = *reinterpret_cast<const Unit<kBytes>*>(job.constant);
  for_each_unit_position(job, item, [&](const auto& spots) {
    for (std::uint32_t i = threadIdx.x; i < item.count; i += kRowThreads)
      store_once<kBytes>(slab.out + spots(i).target, unit);
  });
}

}  // namespace

cudaError_t launch_rows(Kernel kernel, const DeviceSlab& slab, std::uint32_t count,
                        cudaStream_t stream) {
  using Function = void(DeviceSlab);
  Function* const kernels[] = {copy_rows<1>,  copy_rows<2>, copy_rows<4>, copy_rows<8>,
                               copy_rows<16>, fill_rows<1>, fill_rows<2>, fill_rows<4>,
                               fill_rows<8>,  fill_rows<16>};
  const auto index = static_cast<unsigned>(kernel) - static_cast<unsigned>(Kernel::kRows1);
  return launch_blocks(kernels[index], kRowThreads, slab, count, stream);
}

}  // namespace shw
