// Common code of the kernels: memory access in units of 1 to 16 bytes, the job of a block, and unit
// positions. All accesses to slabs and shared memory go through these functions, so that the test
// rig in tests/gpu can count them.
#pragma once

#include <cuda_runtime.h>

#include "gpu/kernels.h"

// The test rig defines these to record accesses to shared memory.
#ifndef SHW_SHARED_READ
#define SHW_SHARED_READ(address, bytes)
#define SHW_SHARED_WRITE(address, bytes)
#define SHW_SHARED_ADD(address)
#define SHW_ADD(address)
#endif

namespace shw {

template <int kBytes>
struct UnitOf;
template <>
struct UnitOf<1> {
  using Type = unsigned char;
};
template <>
struct UnitOf<2> {
  using Type = unsigned short;
};
template <>
struct UnitOf<4> {
  using Type = unsigned int;
};
template <>
struct UnitOf<8> {
  using Type = uint2;
};
template <>
struct UnitOf<16> {
  using Type = uint4;
};
template <int kBytes>
using Unit = typename UnitOf<kBytes>::Type;

// Bypasses the caches, because nothing is read or written twice.
template <int kBytes>
__device__ __forceinline__ Unit<kBytes> load_once(const std::byte* at) {
  return __ldcs(reinterpret_cast<const Unit<kBytes>*>(at));
}
template <int kBytes>
__device__ __forceinline__ void store_once(std::byte* at, Unit<kBytes> unit) {
  __stcs(reinterpret_cast<Unit<kBytes>*>(at), unit);
}
// Cached, because adjacent threads read the same lines.
template <int kBytes>
__device__ __forceinline__ Unit<kBytes> load_shared_line(const std::byte* at) {
  return __ldg(reinterpret_cast<const Unit<kBytes>*>(at));
}

template <class Value>
__device__ __forceinline__ Value load_shared(const Value* at) {
  SHW_SHARED_READ(at, sizeof(Value));
  return *at;
}
template <class Value>
__device__ __forceinline__ void store_shared(Value* at, Value value) {
  SHW_SHARED_WRITE(at, sizeof(Value));
  *at = value;
}

// Atomic add; returns the previous value.
__device__ __forceinline__ unsigned int shared_atomic_add(unsigned int* at, unsigned int value) {
  SHW_SHARED_ADD(at);
  return atomicAdd(at, value);
}
__device__ __forceinline__ void add_global(std::uint64_t* at, std::uint64_t value) {
  SHW_ADD(at);
  atomicAdd(reinterpret_cast<unsigned long long*>(at), value);
}
__device__ __forceinline__ void atomic_max_u64(std::uint64_t* at, std::uint64_t value) {
  SHW_ADD(at);
  atomicMax(reinterpret_cast<unsigned long long*>(at), value);
}

// Copies the job of this block's item to shared memory. All threads must call it.
__device__ __forceinline__ void copy_job(DeviceJob& room, const DeviceJob& job) {
  auto* to = reinterpret_cast<unsigned int*>(&room);
  const auto* from = reinterpret_cast<const unsigned int*>(&job);
  for (unsigned int i = threadIdx.x; i < sizeof(DeviceJob) / 4; i += blockDim.x) to[i] = from[i];
  __syncthreads();
}

struct Spot {
  std::int64_t source, target;
};

__device__ __forceinline__ void step(Spot& at, const DeviceDim& dim, std::uint32_t index) {
  at.source += dim.source * index;
  at.target += dim.target * index;
}

// Position of a unit, by its row-major number in the first `ndim` dimensions.
__device__ __forceinline__ Spot unit_position(const DeviceJob& job, std::uint32_t ndim,
                                              std::uint32_t unit) {
  Spot at{job.source, job.target};
  for (std::uint32_t d = ndim; d-- > 0;) {
    const DeviceDim& dim = job.dims[d];
    const std::uint32_t next = divided(unit, dim.by);
    step(at, dim, unit - next * dim.size);
    unit = next;
  }
  return at;
}

// True if an item is within one row; `at` is then its begin.
__device__ __forceinline__ bool is_in_row(const DeviceJob& job, const Item& item, Spot& at) {
  at = unit_position(job, job.ndim, item.first);
  if (job.ndim == 0) return true;
  const DeviceDim& row = job.dims[job.ndim - 1];
  const std::uint32_t column = item.first - divided(item.first, row.by) * row.size;
  return column + item.count <= row.size;
}

// Position of unit item.first + `index`, with a fast path for items within one row.
struct InRow {
  Spot begin;
  std::int64_t source, target;
  __device__ __forceinline__ Spot operator()(std::uint32_t index) const {
    return {begin.source + source * index, begin.target + target * index};
  }
};
struct Anywhere {
  const DeviceJob& job;
  std::uint32_t first;
  __device__ __forceinline__ Spot operator()(std::uint32_t index) const {
    return unit_position(job, job.ndim, first + index);
  }
};

// Calls visit with the position function that fits the item.
template <class Visit>
__device__ __forceinline__ void for_each_unit_position(const DeviceJob& job, const Item& item,
                                                       Visit visit) {
  Spot begin;
  if (is_in_row(job, item, begin)) {
    const DeviceDim* row = job.ndim == 0 ? nullptr : job.dims + (job.ndim - 1);
    visit(InRow{begin, row == nullptr ? 0 : row->source, row == nullptr ? 0 : row->target});
  } else {
    visit(Anywhere{job, item.first});
  }
}

}  // namespace shw
