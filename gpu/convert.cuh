// Element conversions as in core/exec/convert_elements.cpp: every dtype is converted through
// float32 with the steps of core/tensor/float_steps.h, for all elements that a thread holds, so
// that the dtype is dispatched once.
#pragma once

#include "core/tensor/dtype.h"
#include "core/tensor/float_steps.h"
#include "gpu/device.cuh"

namespace shw {

// kCount elements of kBytes bytes in registers.
template <int kBytes, int kCount>
struct Held {
  static constexpr int kWords = kBytes * kCount >= 4 ? kBytes * kCount / 4 : 1;
  unsigned int words[kWords] = {};

  __device__ __forceinline__ std::uint64_t get(int i) const {
    if constexpr (kBytes == 8)
      return words[2 * i] | std::uint64_t{words[2 * i + 1]} << 32;
    else if constexpr (kBytes == 4)
      return words[i];
    else
      return words[i * kBytes / 4] >> (i * kBytes % 4 * 8) & ((1u << kBytes * 8) - 1);
  }
  // Requires zero bits at position i; set each position once.
  __device__ __forceinline__ void put(int i, std::uint64_t bits) {
    const auto low = static_cast<unsigned int>(bits);
    if constexpr (kBytes == 8) {
      words[2 * i] = low;
      words[2 * i + 1] = static_cast<unsigned int>(bits >> 32);
    } else if constexpr (kBytes == 4) {
      words[i] = low;
    } else {
      words[i * kBytes / 4] |= low << (i * kBytes % 4 * 8);
    }
  }
  __device__ __forceinline__ void load(const std::byte* at) {
    const auto unit = load_once<kBytes * kCount>(at);
    if constexpr (kBytes * kCount >= 8) {
      words[0] = unit.x;
      words[1] = unit.y;
    } else {
      words[0] = unit;
    }
    if constexpr (kBytes * kCount == 16) {
      words[2] = unit.z;
      words[3] = unit.w;
    }
  }
  __device__ __forceinline__ void store(std::byte* at) const {
    if constexpr (kBytes * kCount == 16)
      store_once<16>(at, make_uint4(words[0], words[1], words[2], words[3]));
    else if constexpr (kBytes * kCount == 8)
      store_once<8>(at, make_uint2(words[0], words[1]));
    else
      store_once<kBytes * kCount>(at, static_cast<Unit<kBytes * kCount>>(words[0]));
  }
};

// Conversion steps between the bits of a dtype and float32.
template <NarrowFloat form>
struct NarrowSteps {
  static __device__ __forceinline__ float widen(std::uint64_t bits) {
    return widened<form>(static_cast<std::uint32_t>(bits));
  }
  static __device__ __forceinline__ std::uint64_t narrow(float value) {
    return narrowed<form>(value);
  }
};
struct Float32Steps {
  static __device__ __forceinline__ float widen(std::uint64_t bits) {
    return float_of_bits(static_cast<std::uint32_t>(bits));
  }
  static __device__ __forceinline__ std::uint64_t narrow(float value) {
    return bits_of_float(value);
  }
};
struct Float64Steps {
  static __device__ __forceinline__ float widen(std::uint64_t bits) {
    return float_of_double(__builtin_bit_cast(double, bits));
  }
  static __device__ __forceinline__ std::uint64_t narrow(float value) {
    return __builtin_bit_cast(std::uint64_t, double_of_float(value));
  }
};

// Calls visit with the conversion steps of a dtype of that size.
template <int kBytes, class Visit>
__device__ __forceinline__ void with_steps(Dtype dtype, Visit visit) {
  if constexpr (kBytes == 8) {
    visit(Float64Steps{});
  } else if constexpr (kBytes == 4) {
    visit(Float32Steps{});
  } else if constexpr (kBytes == 2) {
    if (dtype == Dtype::kBfloat16)
      visit(NarrowSteps<kBfloat16Form>{});
    else
      visit(NarrowSteps<kFloat16Form>{});
  } else {
    switch (dtype) {
      case Dtype::kFloat8E4m3fn:
        return visit(NarrowSteps<kE4m3fnForm>{});
      case Dtype::kFloat8E5m2:
        return visit(NarrowSteps<kE5m2Form>{});
      case Dtype::kFloat8E4m3fnuz:
        return visit(NarrowSteps<kE4m3fnuzForm>{});
      default:
        return visit(NarrowSteps<kE5m2fnuzForm>{});
    }
  }
}

// Converts through one intermediate dtype.
template <class Steps, int kCount>
__device__ __forceinline__ void round_trip_through(float (&values)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] = Steps::widen(Steps::narrow(values[i]));
}

// Converts through all intermediate dtypes.
template <int kCount>
__device__ __forceinline__ void between(const DeviceJob& job, float (&values)[kCount]) {
  if (job.op == ElementOp::kScale) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = scaled(values[i], job.factor);
  }
  for (const Dtype hop : job.via) {
    switch (hop) {
      case Dtype::kUnknown:
        return;
      case Dtype::kFloat64:
        round_trip_through<Float64Steps>(values);
        break;
      case Dtype::kFloat32:
        break;
      case Dtype::kFloat16:
        round_trip_through<NarrowSteps<kFloat16Form>>(values);
        break;
      case Dtype::kBfloat16:
        round_trip_through<NarrowSteps<kBfloat16Form>>(values);
        break;
      default:
        with_steps<1>(hop, [&](auto steps) { round_trip_through<decltype(steps)>(values); });
    }
  }
}

// Converts one element given as bits, with run-time dtypes.
__device__ __forceinline__ std::uint64_t changed(const DeviceJob& job, std::uint64_t bits) {
  float values[1];
  const auto widen = [&](auto steps) { values[0] = steps.widen(bits); };
  switch (job.source_size) {
    case 1:
      with_steps<1>(job.from, widen);
      break;
    case 2:
      with_steps<2>(job.from, widen);
      break;
    case 4:
      with_steps<4>(job.from, widen);
      break;
    default:
      with_steps<8>(job.from, widen);
  }
  between(job, values);
  std::uint64_t out = 0;
  const auto narrow = [&](auto steps) { out = steps.narrow(values[0]); };
  switch (job.target_size) {
    case 1:
      with_steps<1>(job.to, narrow);
      break;
    case 2:
      with_steps<2>(job.to, narrow);
      break;
    case 4:
      with_steps<4>(job.to, narrow);
      break;
    default:
      with_steps<8>(job.to, narrow);
  }
  return out;
}

// An element of up to 16 bytes at any address.
struct Element {
  std::uint64_t low, high;
};

__device__ __forceinline__ Element load_element(const std::byte* at, std::uint32_t size) {
  Element element{0, 0};
  if (reinterpret_cast<std::uintptr_t>(at) % size != 0) {
    for (std::uint32_t i = 0; i < size; ++i) {
      const std::uint64_t byte = load_shared_line<1>(at + i);
      (i < 8 ? element.low : element.high) |= byte << (i % 8 * 8);
    }
    return element;
  }
  switch (size) {
    case 1:
      element.low = load_shared_line<1>(at);
      break;
    case 2:
      element.low = load_shared_line<2>(at);
      break;
    case 4:
      element.low = load_shared_line<4>(at);
      break;
    case 8: {
      const uint2 unit = load_shared_line<8>(at);
      element.low = unit.x | std::uint64_t{unit.y} << 32;
      break;
    }
    default: {
      const uint4 unit = load_shared_line<16>(at);
      element.low = unit.x | std::uint64_t{unit.y} << 32;
      element.high = unit.z | std::uint64_t{unit.w} << 32;
    }
  }
  return element;
}

__device__ __forceinline__ void store_element(std::byte* at, std::uint32_t size,
                                              const Element& element) {
  if (reinterpret_cast<std::uintptr_t>(at) % size != 0) {
    for (std::uint32_t i = 0; i < size; ++i)
      store_once<1>(
          at + i, static_cast<unsigned char>((i < 8 ? element.low : element.high) >> (i % 8 * 8)));
    return;
  }
  const auto low = static_cast<unsigned int>(element.low);
  const auto next = static_cast<unsigned int>(element.low >> 32);
  switch (size) {
    case 1:
      return store_once<1>(at, static_cast<unsigned char>(low));
    case 2:
      return store_once<2>(at, static_cast<unsigned short>(low));
    case 4:
      return store_once<4>(at, low);
    case 8:
      return store_once<8>(at, make_uint2(low, next));
    default:
      return store_once<16>(at, make_uint4(low, next, static_cast<unsigned int>(element.high),
                                           static_cast<unsigned int>(element.high >> 32)));
  }
}

// Reads and converts the element at `at`.
__device__ __forceinline__ Element converted_element(const DeviceJob& job, const std::byte* at) {
  if (job.op == ElementOp::kConstant) return {job.constant[0], job.constant[1]};
  Element element = load_element(at, job.source_size);
  if (job.op != ElementOp::kCopy) element.low = changed(job, element.low);
  return element;
}

}  // namespace shw
