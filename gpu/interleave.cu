// Separates 2, 4 or 8 interleaved parts, and interleaves them. A thread holds one unit of the
// interleaved side, 16 or 32 bytes, and one piece of each part, 4 bytes or more: neighbours are
// contiguous on both sides, and nothing goes through shared memory. A thread reads 128 bytes before
// it writes.
#include <type_traits>

#include "gpu/convert.cuh"

namespace shw {
namespace {

template <int kElement, int kParts>
struct Interleaved {
  static constexpr int kUnit = static_cast<int>(interleaved_unit(kElement, kParts));  // bytes
  static constexpr int kPiece = kUnit / kParts;
  static constexpr std::uint32_t kDeep = 128 / kUnit;
  using Piece = Held<kElement, kPiece / kElement>;

  Held<kElement, kUnit / kElement> unit;

  __device__ __forceinline__ void load(const std::byte* at) {
#pragma unroll
    for (int v = 0; v < kUnit / 16; ++v) {
      const uint4 vector = load_once<16>(at + v * 16);
      unit.words[4 * v] = vector.x;
      unit.words[4 * v + 1] = vector.y;
      unit.words[4 * v + 2] = vector.z;
      unit.words[4 * v + 3] = vector.w;
    }
  }
  __device__ __forceinline__ void store(std::byte* at) const {
#pragma unroll
    for (int v = 0; v < kUnit / 16; ++v)
      store_once<16>(at + v * 16, make_uint4(unit.words[4 * v], unit.words[4 * v + 1],
                                             unit.words[4 * v + 2], unit.words[4 * v + 3]));
  }
  __device__ __forceinline__ Piece piece(int part) const {
    Piece out;
#pragma unroll
    for (int i = 0; i < kPiece / kElement; ++i) out.put(i, unit.get(i * kParts + part));
    return out;
  }
  // Sets each part once, in a unit of zeros.
  __device__ __forceinline__ void set_piece(int part, const Piece& piece) {
#pragma unroll
    for (int i = 0; i < kPiece / kElement; ++i) unit.put(i * kParts + part, piece.get(i));
  }
};

template <int kElement, int kParts, class Spots>
__device__ __forceinline__ void separate_units(const DeviceSlab& slab, const DeviceJob& job,
                                               std::uint32_t count, const Spots& spots) {
  using Of = Interleaved<kElement, kParts>;
  for (std::uint32_t first = threadIdx.x; first < count; first += Of::kDeep * kRowThreads) {
    Of held[Of::kDeep];
#pragma unroll
    for (std::uint32_t i = 0; i < Of::kDeep; ++i) {
      const std::uint32_t unit = first + i * kRowThreads;
      if (unit < count) held[i].load(slab.in + spots(unit).source);
    }
#pragma unroll
    for (std::uint32_t i = 0; i < Of::kDeep; ++i) {
      const std::uint32_t unit = first + i * kRowThreads;
      if (unit >= count) continue;
      std::byte* to = slab.out + spots(unit).target;
#pragma unroll
      for (int part = 0; part < kParts; ++part)
        held[i].piece(part).store(to + job.along.target * part);
    }
  }
}

template <int kElement, int kParts, class Spots>
__device__ __forceinline__ void interleave_units(const DeviceSlab& slab, const DeviceJob& job,
                                                 std::uint32_t count, const Spots& spots) {
  using Of = Interleaved<kElement, kParts>;
  for (std::uint32_t first = threadIdx.x; first < count; first += Of::kDeep * kRowThreads) {
    typename Of::Piece held[Of::kDeep][kParts];
#pragma unroll
    for (std::uint32_t i = 0; i < Of::kDeep; ++i) {
      const std::uint32_t unit = first + i * kRowThreads;
      if (unit >= count) continue;
      const std::byte* from = slab.in + spots(unit).source;
#pragma unroll
      for (int part = 0; part < kParts; ++part) held[i][part].load(from + job.along.source * part);
    }
#pragma unroll
    for (std::uint32_t i = 0; i < Of::kDeep; ++i) {
      const std::uint32_t unit = first + i * kRowThreads;
      if (unit >= count) continue;
      Of out;
#pragma unroll
      for (int part = 0; part < kParts; ++part) out.set_piece(part, held[i][part]);
      out.store(slab.out + spots(unit).target);
    }
  }
}

// Calls visit with the number of parts as a constant.
template <int kElement, class Visit>
__device__ __forceinline__ void with_parts(std::uint32_t parts, Visit visit) {
  if (parts == 2) return visit(std::integral_constant<int, 2>{});
  if (parts == 4) return visit(std::integral_constant<int, 4>{});
  if constexpr (kElement < 8) visit(std::integral_constant<int, 8>{});
}

template <int kElement>
__global__ void __launch_bounds__(kRowThreads) separate(DeviceSlab slab) {
  __shared__ DeviceJob job;
  const Item item = slab.items[blockIdx.x];
  copy_job(job, slab.jobs[item.job]);
  with_parts<kElement>(job.run, [&](auto parts) {
    for_each_unit_position(job, item, [&](const auto& spots) {
      separate_units<kElement, decltype(parts)::value>(slab, job, item.count, spots);
    });
  });
}

template <int kElement>
__global__ void __launch_bounds__(kRowThreads) interleave(DeviceSlab slab) {
  __shared__ DeviceJob job;
  const Item item = slab.items[blockIdx.x];
  copy_job(job, slab.jobs[item.job]);
  with_parts<kElement>(job.run, [&](auto parts) {
    for_each_unit_position(job, item, [&](const auto& spots) {
      interleave_units<kElement, decltype(parts)::value>(slab, job, item.count, spots);
    });
  });
}

}  // namespace

cudaError_t launch_interleave(Kernel kernel, const DeviceSlab& slab, std::uint32_t count,
                              cudaStream_t stream) {
  using Function = void(DeviceSlab);
  Function* const kernels[] = {separate<1>,   separate<2>,   separate<4>,   separate<8>,
                               interleave<1>, interleave<2>, interleave<4>, interleave<8>};
  const auto index = static_cast<unsigned>(kernel) - static_cast<unsigned>(Kernel::kSeparate1);
  return launch_blocks(kernels[index], kRowThreads, slab, count, stream);
}

}  // namespace shw
