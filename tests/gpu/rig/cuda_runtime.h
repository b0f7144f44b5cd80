// Stands in for CUDA's own header, so that g++ compiles the kernels of gpu/ as they are: every
// thread of a block is a fiber, __syncthreads() hands over to the next one, shared memory is static
// memory. It judges results and traffic and is no way to run: one thread at a time, no warp in
// step.
//
// What a real card's speed hangs on is counted from addresses (rig/traffic.h): every access to the
// slabs and to shared memory is noted with its warp, the place in the code and how often the thread
// has been there, which tells the accesses of one warp instruction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

struct uint2 {
  unsigned int x, y;
} __attribute__((aligned(8)));
struct uint4 {
  unsigned int x, y, z, w;
} __attribute__((aligned(16)));
struct uint3 {
  unsigned int x = 0, y = 0, z = 0;
};
struct dim3 {
  unsigned int x, y, z;
  dim3(unsigned int count = 1) : x(count), y(1), z(1) {}
};
inline uint2 make_uint2(unsigned int x, unsigned int y) {
  return {x, y};
}
inline uint4 make_uint4(unsigned int x, unsigned int y, unsigned int z, unsigned int w) {
  return {x, y, z, w};
}

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __shared__ static
#define __launch_bounds__(...)

using cudaStream_t = void*;
enum cudaError_t { cudaSuccess = 0 };
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes;
  cudaStream_t stream;
};

namespace rig {

enum class Access : std::uint8_t { kRead, kWrite, kSharedRead, kSharedWrite };
// `site`: which instruction it is.
void note(Access access, const void* site, const void* address, std::size_t bytes);
void barrier();
void run_blocks(unsigned int blocks, unsigned int threads, const std::function<void()>& thread);

}  // namespace rig

inline uint3 threadIdx, blockIdx;
inline dim3 blockDim, gridDim;

inline void __syncthreads() {
  rig::barrier();
}

// Never inlined: where it returns to is the place in the kernel.
template <class Value>
[[gnu::noinline]] Value __ldcs(const Value* at) {
  rig::note(rig::Access::kRead, __builtin_return_address(0), at, sizeof(Value));
  return *at;
}
template <class Value>
[[gnu::noinline]] Value __ldg(const Value* at) {
  rig::note(rig::Access::kRead, __builtin_return_address(0), at, sizeof(Value));
  return *at;
}
template <class Value>
[[gnu::noinline]] void __stcs(Value* at, Value value) {
  rig::note(rig::Access::kWrite, __builtin_return_address(0), at, sizeof(Value));
  *at = value;
}
[[gnu::noinline]] inline void note_shared_read(const void* at, std::size_t bytes) {
  rig::note(rig::Access::kSharedRead, __builtin_return_address(0), at, bytes);
}
[[gnu::noinline]] inline void note_shared_write(const void* at, std::size_t bytes) {
  rig::note(rig::Access::kSharedWrite, __builtin_return_address(0), at, bytes);
}
#define SHW_SHARED_READ(address, bytes) note_shared_read(address, bytes)
#define SHW_SHARED_WRITE(address, bytes) note_shared_write(address, bytes)

inline unsigned int __byte_perm(unsigned int low, unsigned int high, unsigned int pick) {
  const std::uint64_t both = low | std::uint64_t{high} << 32;
  unsigned int out = 0;
  for (unsigned int i = 0; i < 4; ++i)
    out |= static_cast<unsigned int>(both >> (pick >> (4 * i) & 7) * 8 & 0xFF) << (8 * i);
  return out;
}

template <class... Wanted, class... Given>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Wanted...),
                               Given&&... given) {
  rig::run_blocks(config->gridDim.x, config->blockDim.x, [&] { kernel(given...); });
  return cudaSuccess;
}
