// Transposes planes of elements.
//
// A thread holds a square of vector x vector elements: it reads one 16-byte vector from each
// row, transposes the square in registers (bytes with __byte_perm; words by renaming), and
// writes each column, a vector of the target, to shared memory. 16 x 16 threads form a tile of
// 256 bytes on both sides, so that every 32-byte sector is moved whole. Vector c of row s is at
// position c ^ (s / vector): eight threads that access shared memory along either side then use
// all 32 banks.
#include "gpu/plane_tile.cuh"

namespace shw {
namespace {

// A square of kSide vectors of kBytes, transposed in registers.
template <int kElement, int kBytes>
struct Square {
  static constexpr int kSide = kBytes / kElement;  // elements per vector
  static constexpr int kWords = kBytes >= 4 ? kBytes / 4 : 1;
  unsigned int words[kSide][kWords];

  __device__ __forceinline__ void set(int row, const std::byte* from) {
    const auto vector = load_once<kBytes>(from);
    if constexpr (kBytes == 16) {
      words[row][0] = vector.x;
      words[row][1] = vector.y;
      words[row][2] = vector.z;
      words[row][3] = vector.w;
    } else {
      words[row][0] = vector.x;
      words[row][1] = vector.y;
    }
  }

  // The vector of column `s`.
  __device__ __forceinline__ Unit<kBytes> column(int s) const {
    unsigned int out[kWords];
    constexpr int in_word = kElement < 4 ? 4 / kElement : 1;
#pragma unroll
    for (int w = 0; w < kWords; ++w) {
      if constexpr (kElement == 1) {
        const unsigned int pick = 0x0040u + static_cast<unsigned int>(s % 4) * 0x0011u;
        const int word = s / 4;
        const unsigned int low = __byte_perm(words[4 * w][word], words[4 * w + 1][word], pick);
        const unsigned int high = __byte_perm(words[4 * w + 2][word], words[4 * w + 3][word], pick);
        out[w] = __byte_perm(low, high, 0x5410);
      } else if constexpr (kElement == 2) {
        out[w] = __byte_perm(words[2 * w][s / in_word], words[2 * w + 1][s / in_word],
                             s % 2 == 0 ? 0x5410 : 0x7632);
      } else {
        // Whole words: word w of the column comes from row w / each.
        constexpr int each = kElement / 4;
        out[w] = words[w / each][s * each + w % each];
      }
    }
    if constexpr (kBytes == 16)
      return make_uint4(out[0], out[1], out[2], out[3]);
    else
      return make_uint2(out[0], out[1]);
  }
};

template <int kElement>
__global__ void __launch_bounds__(kTransposeThreads) transpose_square_tiles(DeviceSlab slab) {
  constexpr int kBytes = static_cast<int>(transpose_vector_bytes(kElement));
  constexpr std::uint32_t kSide = kBytes / kElement, kVectors = kTransposeVectors;
  __shared__ DeviceJob job;
  __shared__ Unit<kBytes> room[kVectors * kSide * kVectors];
  const Item item = slab.items[blockIdx.x];
  copy_job(job, slab.jobs[item.job]);
  const DeviceDim &rows = job.dims[job.ndim - 2], &columns = job.dims[job.ndim - 1];
  const std::uint32_t x = threadIdx.x % kVectors, y = threadIdx.x / kVectors;
  for (std::uint32_t i = 0; i < item.count; ++i) {
    const Tile tile = tile_of(job, item.first + i, kVectors * kSide, kVectors * kSide);
    // The sides of the plane are multiples of a vector.
    const std::uint32_t down = (rows.size - tile.row) / kSide;
    const std::uint32_t across = (columns.size - tile.column) / kSide;
    if (x < down && y < across) {
      const std::byte* from = slab.in + tile.at.source + x * kBytes + columns.source * (y * kSide);
      Square<kElement, kBytes> square;
#pragma unroll
      for (int t = 0; t < static_cast<int>(kSide); ++t) square.set(t, from + columns.source * t);
#pragma unroll
      for (int s = 0; s < static_cast<int>(kSide); ++s)
        store_shared(&room[(x * kSide + s) * kVectors + (y ^ x)], square.column(s));
    }
    __syncthreads();
    std::byte* to = slab.out + tile.at.target + x * kBytes;
#pragma unroll
    for (std::uint32_t s = 0; s < kSide; ++s) {
      const std::uint32_t row = s * kVectors + y;
      if (row < down * kSide && x < across)
        store_once<kBytes>(to + rows.target * row,
                           load_shared(&room[row * kVectors + (x ^ row / kSide)]));
    }
    if (i + 1 < item.count) __syncthreads();
  }
}

}  // namespace

cudaError_t launch_transpose(Kernel kernel, const DeviceSlab& slab, std::uint32_t count,
                             cudaStream_t stream) {
  using Function = void(DeviceSlab);
  Function* const kernels[] = {transpose_square_tiles<1>, transpose_square_tiles<2>,
                               transpose_square_tiles<4>, transpose_square_tiles<8>,
                               transpose_square_tiles<16>};
  const auto index = static_cast<unsigned>(kernel) - static_cast<unsigned>(Kernel::kTranspose1);
  return launch_blocks(kernels[index], kTransposeThreads, slab, count, stream);
}

}  // namespace shw
