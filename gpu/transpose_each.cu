// Transposes planes element by element: borders next to whole vectors, planes at odd addresses, and
// narrow planes (two interleaved rows are a plane of height two). Threads read along the source and
// write along the target, contiguous on both sides; a tile has 64 x 64 elements, or is longer for
// narrow planes.
#include "gpu/plane_tile.cuh"

namespace shw {
namespace {

constexpr std::uint32_t kThreads = kTransposeThreads;

// Row pitch of a tile in shared memory, wider than the tile, so that threads in a column use
// different banks.
template <int kElement>
__device__ __forceinline__ std::uint32_t pitch_of(std::uint32_t height, std::uint32_t width) {
  constexpr std::uint32_t kBankElements = kElement < 4 ? 4 / kElement : 1;  // per 4-byte bank
  constexpr std::uint32_t kAtOnce = kElement <= 4 ? 32 : 128 / kElement;    // threads
  std::uint32_t words = (width + kBankElements - 1) / kBankElements;
  std::uint32_t apart = height >= kAtOnce ? 1 : kAtOnce / kBankElements / height;
  if (apart == 0) apart = 1;
  return words % 2 == 1 && apart == 1 ? words * kBankElements : (words + apart) * kBankElements;
}

template <int kElement>
__global__ void __launch_bounds__(kThreads) transpose_each_element(DeviceSlab slab) {
  using Element = Unit<kElement>;
  constexpr std::uint32_t kElements = transpose_each_elements(kElement);
  constexpr std::uint32_t kEach = kElements / kThreads;
  __shared__ DeviceJob job;
  // Two columns of bytes need one word per row, the maximum overhead.
  __shared__ Element room[kElement == 1 ? kElements * 2 : kElements * 3 / 2 + 256];
  const Item item = slab.items[blockIdx.x];
  copy_job(job, slab.jobs[item.job]);
  const DeviceDim &rows = job.dims[job.ndim - 2], &columns = job.dims[job.ndim - 1];
  const std::uint32_t height = 1u << job.tile_shift[0], width = 1u << job.tile_shift[1];
  const std::uint32_t pitch = pitch_of<kElement>(height, width);
  for (std::uint32_t i = 0; i < item.count; ++i) {
    const Tile tile = tile_of(job, item.first + i, height, width);
    const std::uint32_t down = rows.size - tile.row, across = columns.size - tile.column;
    Element held[kEach];
#pragma unroll
    for (std::uint32_t e = 0; e < kEach; ++e) {
      const std::uint32_t at = e * kThreads + threadIdx.x;
      const std::uint32_t s = at & (height - 1), t = at >> job.tile_shift[0];
      if (s < down && t < across && t < width)
        held[e] = load_shared_line<kElement>(slab.in + tile.at.source + s * kElement +
                                             columns.source * t);
    }
#pragma unroll
    for (std::uint32_t e = 0; e < kEach; ++e) {
      const std::uint32_t at = e * kThreads + threadIdx.x;
      const std::uint32_t s = at & (height - 1), t = at >> job.tile_shift[0];
      if (s < down && t < across && t < width) store_shared(&room[s * pitch + t], held[e]);
    }
    __syncthreads();
#pragma unroll
    for (std::uint32_t e = 0; e < kEach; ++e) {
      const std::uint32_t at = e * kThreads + threadIdx.x;
      const std::uint32_t t = at & (width - 1), s = at >> job.tile_shift[1];
      if (s < down && t < across && s < height)
        store_once<kElement>(slab.out + tile.at.target + rows.target * s + t * kElement,
                             load_shared(&room[s * pitch + t]));
    }
    if (i + 1 < item.count) __syncthreads();
  }
}

}  // namespace

cudaError_t launch_transpose_each(Kernel kernel, const DeviceSlab& slab, std::uint32_t count,
                                  cudaStream_t stream) {
  using Function = void(DeviceSlab);
  Function* const kernels[] = {transpose_each_element<1>, transpose_each_element<2>,
                               transpose_each_element<4>, transpose_each_element<8>};
  const auto index = static_cast<unsigned>(kernel) - static_cast<unsigned>(Kernel::kTransposeEach1);
  return launch_blocks(kernels[index], kTransposeThreads, slab, count, stream);
}

}  // namespace shw
