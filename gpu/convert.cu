// Casts and scalings, contiguous on both sides. A thread moves 16 bytes of the wider dtype at a
// time, so that neighbours are contiguous on both sides, and loads 16 elements before it writes.
#include "gpu/convert.cuh"

namespace shw {
namespace {

template <int kBefore, int kAfter>
struct Shape {
  static constexpr int kUnit = 16 / (kBefore > kAfter ? kBefore : kAfter);  // elements per vector
  static constexpr int kDeep = kUnit >= 16 ? 1 : 16 / kUnit;                // vectors per thread
  static constexpr int kCount = kUnit * kDeep;
};

template <int kBefore, int kAfter, class Spots>
__device__ __forceinline__ void convert_units(const DeviceSlab& slab, const DeviceJob& job,
                                              std::uint32_t count, const Spots& spots) {
  using Of = Shape<kBefore, kAfter>;
  for (std::uint32_t first = threadIdx.x; first < count; first += Of::kDeep * kRowThreads) {
    Held<kBefore, Of::kUnit> before[Of::kDeep];
#pragma unroll
    for (int i = 0; i < Of::kDeep; ++i) {
      const std::uint32_t unit = first + static_cast<std::uint32_t>(i) * kRowThreads;
      if (unit < count) before[i].load(slab.in + spots(unit).source);
    }
    float values[Of::kCount];
    with_steps<kBefore>(job.from, [&](auto steps) {
#pragma unroll
      for (int i = 0; i < Of::kCount; ++i)
        values[i] = steps.widen(before[i / Of::kUnit].get(i % Of::kUnit));
    });
    between(job, values);
    Held<kAfter, Of::kUnit> after[Of::kDeep];
    with_steps<kAfter>(job.to, [&](auto steps) {
#pragma unroll
      for (int i = 0; i < Of::kCount; ++i)
        after[i / Of::kUnit].put(i % Of::kUnit, steps.narrow(values[i]));
    });
#pragma unroll
    for (int i = 0; i < Of::kDeep; ++i) {
      const std::uint32_t unit = first + static_cast<std::uint32_t>(i) * kRowThreads;
      if (unit < count) after[i].store(slab.out + spots(unit).target);
    }
  }
}

template <int kBefore, int kAfter>
__global__ void __launch_bounds__(kRowThreads) convert_rows(DeviceSlab slab) {
  __shared__ DeviceJob job;
  const Item item = slab.items[blockIdx.x];
  copy_job(job, slab.jobs[item.job]);
  for_each_unit_position(job, item, [&](const auto& spots) {
    convert_units<kBefore, kAfter>(slab, job, item.count, spots);
  });
}

}  // namespace

cudaError_t launch_convert(Kernel kernel, const DeviceSlab& slab, std::uint32_t count,
                           cudaStream_t stream) {
  using Function = void(DeviceSlab);
  Function* const kernels[] = {
      convert_rows<1, 1>, convert_rows<1, 2>, convert_rows<1, 4>, convert_rows<1, 8>,
      convert_rows<2, 1>, convert_rows<2, 2>, convert_rows<2, 4>, convert_rows<2, 8>,
      convert_rows<4, 1>, convert_rows<4, 2>, convert_rows<4, 4>, convert_rows<4, 8>,
      convert_rows<8, 1>, convert_rows<8, 2>, convert_rows<8, 4>, convert_rows<8, 8>};
  const auto index = static_cast<unsigned>(kernel) - static_cast<unsigned>(Kernel::kChange1To1);
  return launch_blocks(kernels[index], kRowThreads, slab, count, stream);
}

}  // namespace shw
