// A substitute for CUDA's own header, so that g++ compiles the kernels of gpu/ unchanged: every
// thread of a block is a fiber, __syncthreads() switches to the next one, shared memory is static
// memory. The rig checks results and memory traffic; it is not meant for real work, because one
// thread runs at a time and there are no warps in lockstep.
//
// The factors that determine a real GPU's speed are counted from addresses (rig/traffic.h): every
// access to the slabs and to shared memory is recorded with its warp, its place in the code and how
// often the thread has been there, which identifies the accesses of one warp instruction.
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

using cudaStream_t = struct rig_stream*;
using cudaEvent_t = struct rig_event*;
enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInsufficientDriver = 35,
  cudaErrorNoDevice = 100,
  cudaErrorLaunchFailure = 719
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2 };
struct cudaUUID_t {
  char bytes[16];
};
struct cudaDeviceProp {
  char name[256];
  cudaUUID_t uuid;
  std::size_t totalGlobalMem;
};
#define CUDART_VERSION 13000
constexpr unsigned int cudaStreamNonBlocking = 1;

// Defined in rig/streams.cpp. Work in a stream is done later; work without a stream is done at
// once.
cudaError_t cudaMalloc(void** memory, std::size_t bytes);
cudaError_t cudaMallocHost(void** memory, std::size_t bytes);
cudaError_t cudaFree(void* memory);
cudaError_t cudaFreeHost(void* memory);
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags);
cudaError_t cudaEventCreate(cudaEvent_t* event);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetLastError();
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int index);

struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes;
  cudaStream_t stream;
};

namespace rig {

// The last two are atomic: nothing happens between their read and their write.
enum class Access : std::uint8_t { kRead, kWrite, kSharedRead, kSharedWrite, kSharedAdd, kAdd };
// `site` identifies the instruction.
void note(Access access, const void* site, const void* address, std::size_t bytes);
void barrier();
void run_blocks(unsigned int blocks, unsigned int threads, const std::function<void()>& thread);
cudaError_t do_later(cudaStream_t stream, std::function<void()> work);

}  // namespace rig

inline uint3 threadIdx, blockIdx;
inline dim3 blockDim, gridDim;

inline void __syncthreads() {
  rig::barrier();
}

// Never inlined: its return address identifies the place in the kernel.
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
[[gnu::noinline]] inline void note_shared_add(const void* at) {
  rig::note(rig::Access::kSharedAdd, __builtin_return_address(0), at, 4);
}
[[gnu::noinline]] inline void note_add(const void* at) {
  rig::note(rig::Access::kAdd, __builtin_return_address(0), at, 8);
}
#define SHW_SHARED_ADD(address) note_shared_add(address)
#define SHW_ADD(address) note_add(address)
#define SHW_SHARED_READ(address, bytes) note_shared_read(address, bytes)
#define SHW_SHARED_WRITE(address, bytes) note_shared_write(address, bytes)

// Fibers switch only at barriers.
template <class Number>
Number atomicAdd(Number* at, Number value) {
  const Number before = *at;
  *at += value;
  return before;
}
inline unsigned long long atomicAdd(unsigned long long* at, std::uint64_t value) {
  return atomicAdd<unsigned long long>(at, value);
}
inline unsigned long long atomicMax(unsigned long long* at, std::uint64_t value) {
  const unsigned long long before = *at;
  if (value > before) *at = value;
  return before;
}
inline int __clzll(long long value) {
  return value == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(value));
}

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
  return rig::do_later(
      config->stream, [blocks = config->gridDim.x, threads = config->blockDim.x, kernel, given...] {
        rig::run_blocks(blocks, threads, [&] { kernel(given...); });
      });
}
