// Value statistics: elements per power of two, zeros, infinities and NaNs, minimum and maximum, and
// exact sums of magnitudes and squares. All are integers, so that any order gives equal bits;
// gpu/statistics_tables.h describes the tables.
//
// A thread accumulates in registers while elements stay in the same group of 32 powers and in the
// same slot, and flushes to shared memory when that changes: weights are mostly in one or two
// groups, constants in one slot. A block flushes to the table once.
#include <type_traits>

#include "gpu/convert.cuh"
#include "gpu/statistics_tables.h"

namespace shw {
namespace {

__extension__ using Wide = unsigned __int128;

// A decomposed element. `key` is ordered by value.
struct Number {
  std::uint32_t slot, power;
  std::uint64_t magnitude, key;
  bool negative, is_finite, is_nan;
};

template <NarrowFloat form, NumberShape shape_of_dtype>
struct FloatNumbers {
  static constexpr NumberShape shape = shape_of_dtype;
  static __device__ __forceinline__ Number parts(std::uint64_t bits) {
    constexpr std::uint64_t kSign = std::uint64_t{1} << (form.exponent_bits + form.mantissa_bits);
    const NumberParts parts = parts_of(form, bits);
    Number number{0,
                  static_cast<std::uint32_t>(parts.power),
                  parts.magnitude,
                  parts.negative ? ~bits & (kSign | (kSign - 1)) : bits | kSign,
                  parts.negative,
                  !parts.is_nan && !parts.is_infinite,
                  parts.is_nan};
    if (parts.is_nan)
      number.slot = nan_slot(shape);
    else if (parts.is_infinite)
      number.slot = infinite_slot(shape);
    else if (parts.magnitude != 0)
      number.slot = number.power + 64 -
                    static_cast<std::uint32_t>(__clzll(static_cast<long long>(parts.magnitude)));
    return number;
  }
};

template <int kBytes, bool is_signed>
struct WholeNumbers {
  static constexpr NumberShape shape{8 * kBytes, 1};
  static __device__ __forceinline__ Number parts(std::uint64_t bits) {
    constexpr std::uint64_t kSign = std::uint64_t{1} << (8 * kBytes - 1);
    const bool negative = is_signed && (bits & kSign) != 0;
    const std::uint64_t magnitude = negative ? (~bits + 1) & (kSign | (kSign - 1)) : bits;
    const auto slot =
        magnitude == 0
            ? 0u
            : 64u - static_cast<std::uint32_t>(__clzll(static_cast<long long>(magnitude)));
    return {slot, 0, magnitude, is_signed ? bits ^ kSign : bits, negative, true, false};
  }
};

// Calls visit with the steps of a dtype of that size.
template <int kBytes, class Visit>
__device__ __forceinline__ void with_numbers(Dtype dtype, Visit visit) {
  if constexpr (kBytes == 2) {
    if (dtype == Dtype::kFloat16)
      return visit(FloatNumbers<kFloat16Form, number_shape(Dtype::kFloat16)>{});
    if (dtype == Dtype::kBfloat16)
      return visit(FloatNumbers<kBfloat16Form, number_shape(Dtype::kBfloat16)>{});
    if (dtype == Dtype::kInt16) return visit(WholeNumbers<2, true>{});
  } else if constexpr (kBytes == 4) {
    if (dtype == Dtype::kFloat32)
      return visit(FloatNumbers<kFloat32Form, number_shape(Dtype::kFloat32)>{});
    if (dtype == Dtype::kInt32) return visit(WholeNumbers<4, true>{});
  } else {
    if (dtype == Dtype::kFloat64)
      return visit(FloatNumbers<kFloat64Form, number_shape(Dtype::kFloat64)>{});
    if (dtype == Dtype::kInt64) return visit(WholeNumbers<8, true>{});
  }
  visit(WholeNumbers<kBytes, false>{});
}

// Maximum shared memory for dtypes of that size.
template <int kBytes>
struct NumberRooms {
  static constexpr NumberShape kMost = number_shape(kBytes == 2   ? Dtype::kBfloat16
                                                    : kBytes == 4 ? Dtype::kFloat32
                                                                  : Dtype::kFloat64);
  static constexpr std::uint32_t kCounts = 2 * slots_of(kMost);
  static constexpr std::uint32_t kSums = groups_of(kMost) * sum_words(kBytes).all();
};

// Atomically adds to a multi-word number; carries propagate separately.
template <std::uint32_t kWords>
__device__ __forceinline__ void add_to_words(unsigned int* words, Wide value, std::uint64_t high) {
  std::uint64_t carry = 0;
#pragma unroll
  for (std::uint32_t i = 0; i < kWords; ++i) {
    const auto word = static_cast<unsigned int>(
        i < 4 ? static_cast<std::uint64_t>(value >> (i < 4 ? 32 * i : 0)) : high >> (32 * (i - 4)));
    const std::uint64_t more = carry + word;
    const auto low = static_cast<unsigned int>(more);
    carry = more >> 32;
    if (low == 0) continue;
    const unsigned int before = shared_atomic_add(words + i, low);
    carry += before + low < before ? 1 : 0;
  }
}

// Counts of one thread that are not flushed yet.
template <int kBytes, class Steps>
struct ThreadCounts {
  static constexpr SumWords kOf = sum_words(kBytes);
  // Sum of at most 256 elements: 55 + 8 bits, or 84 + 8.
  using Sum = std::conditional_t<kBytes <= 4, std::uint64_t, Wide>;

  unsigned int* counts;
  unsigned int* sums;
  std::uint32_t slot = 0, run = 0, group = 0;
  Sum plus = 0, minus = 0;
  Wide square = 0;
  std::uint64_t square_high = 0;
  std::uint64_t not_least = 0, greatest = 0;

  __device__ __forceinline__ void add(std::uint64_t bits) {
    const Number number = Steps::parts(bits);
    if (!number.is_nan) {
      not_least = ~number.key > not_least ? ~number.key : not_least;
      greatest = number.key > greatest ? number.key : greatest;
    }
    const std::uint32_t now = number.slot + (number.negative ? slots_of(Steps::shape) : 0);
    if (now != slot) {
      flush_count();
      slot = now;
      run = 0;
    }
    ++run;
    if (!number.is_finite) return;
    if (number.power / 32 != group) {
      flush_sums();
      group = number.power / 32;
    }
    add_magnitude(number.magnitude, number.power % 32, number.negative);
  }
  __device__ __forceinline__ void flush() {
    flush_count();
    flush_sums();
  }

 private:
  __device__ __forceinline__ void add_magnitude(std::uint64_t magnitude, std::uint32_t shift,
                                                bool negative) {
    const Sum moved = static_cast<Sum>(magnitude) << shift;
    if (negative)
      minus += moved;
    else
      plus += moved;
    if constexpr (kBytes <= 4) {
      square += static_cast<Wide>(magnitude * magnitude) << (2 * shift);
    } else {
      const Wide whole = static_cast<Wide>(magnitude) * magnitude;
      const Wide low = whole << (2 * shift);
      square += low;
      square_high += (square < low ? 1 : 0) +
                     (shift == 0 ? 0 : static_cast<std::uint64_t>(whole >> (128 - 2 * shift)));
    }
  }
  __device__ __forceinline__ void flush_count() {
    if (run != 0) shared_atomic_add(counts + slot, run);
  }
  __device__ __forceinline__ void flush_sums() {
    unsigned int* to = sums + group * kOf.all();
    if (plus != 0) add_to_words<kOf.magnitude>(to, plus, 0);
    if (minus != 0) add_to_words<kOf.magnitude>(to + kOf.magnitude, minus, 0);
    if (square != 0 || square_high != 0)
      add_to_words<kOf.square>(to + 2 * kOf.magnitude, square, square_high);
    plus = minus = 0;
    square = 0;
    square_high = 0;
  }
};

// Calls visit with the bits of each element of an item, 16 adjacent bytes at a time.
template <int kBytes, class Visit>
__device__ __forceinline__ void for_each_element_of_item(const DeviceSlab& slab,
                                                         const DeviceJob& job, const Item& item,
                                                         Visit visit) {
  constexpr std::uint32_t kIn = 16 / kBytes, kDeep = kBytes == 1 ? 1 : 2;
  const std::byte* begin = slab.in + job.source + std::int64_t{item.first} * kBytes;
  const auto beside = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(begin) % 16);
  if (beside % kBytes != 0) {  // elements are misaligned: read byte by byte
    for (std::uint32_t i = threadIdx.x; i < item.count; i += kNumberThreads)
      visit(load_element(begin + i * kBytes, kBytes).low);
    return;
  }
  std::uint32_t head = beside == 0 ? 0 : (16 - beside) / kBytes;
  head = head < item.count ? head : item.count;
  const std::uint32_t units = (item.count - head) / kIn, tail = head + units * kIn;
  if (threadIdx.x < head) visit(load_element(begin + threadIdx.x * kBytes, kBytes).low);
  if (threadIdx.x < item.count - tail)
    visit(load_element(begin + (tail + threadIdx.x) * kBytes, kBytes).low);
  for (std::uint32_t first = threadIdx.x; first < units; first += kDeep * kNumberThreads) {
    Held<kBytes, kIn> held[kDeep];
#pragma unroll
    for (std::uint32_t i = 0; i < kDeep; ++i) {
      const std::uint32_t unit = first + i * kNumberThreads;
      if (unit < units) held[i].load(begin + head * kBytes + std::size_t{unit} * 16);
    }
#pragma unroll
    for (std::uint32_t i = 0; i < kDeep; ++i) {
      if (first + i * kNumberThreads >= units) continue;
#pragma unroll
      for (std::uint32_t k = 0; k < kIn; ++k) visit(held[i].get(static_cast<int>(k)));
    }
  }
}

__device__ __forceinline__ void clear_room(unsigned int* room, std::uint32_t count) {
  for (std::uint32_t i = threadIdx.x; i < count; i += kNumberThreads) store_shared(room + i, 0u);
}
__device__ __forceinline__ void add_to_table(std::uint64_t* table, const unsigned int* room,
                                             std::uint32_t count) {
  for (std::uint32_t i = threadIdx.x; i < count; i += kNumberThreads) {
    const unsigned int word = load_shared(room + i);
    if (word != 0) add_global(table + i, word);
  }
}

// Reduces the maximum over all threads into the table.
__device__ __forceinline__ void reduce_maximum(std::uint64_t own, std::uint64_t* room,
                                               std::uint64_t* table) {
  store_shared(room + threadIdx.x, own);
  for (std::uint32_t half = kNumberThreads / 2; half != 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x >= half) continue;
    const std::uint64_t other = load_shared(room + threadIdx.x + half);
    own = other > own ? other : own;
    store_shared(room + threadIdx.x, own);
  }
  if (threadIdx.x == 0) atomic_max_u64(table, own);
}

template <int kBytes>
__global__ void __launch_bounds__(kNumberThreads) count_numbers(DeviceSlab slab) {
  using Rooms = NumberRooms<kBytes>;
  __shared__ DeviceJob job;
  __shared__ unsigned int counts[Rooms::kCounts];
  __shared__ unsigned int sums[Rooms::kSums];
  __shared__ std::uint64_t keys[2 * kNumberThreads];
  const Item item = slab.items[blockIdx.x];
  clear_room(counts, Rooms::kCounts);
  clear_room(sums, Rooms::kSums);
  copy_job(job, slab.jobs[item.job]);
  with_numbers<kBytes>(job.from, [&](auto steps) {
    using Steps = decltype(steps);
    constexpr NumberPlaces kPlaces = places_of(Steps::shape, kBytes);
    ThreadCounts<kBytes, Steps> counts_of_thread{counts, sums};
    for_each_element_of_item<kBytes>(slab, job, item,
                                     [&](std::uint64_t bits) { counts_of_thread.add(bits); });
    counts_of_thread.flush();
    std::uint64_t* table = slab.numbers + job.target;
    reduce_maximum(counts_of_thread.not_least, keys, table + kPlaces.least);
    reduce_maximum(counts_of_thread.greatest, keys + kNumberThreads, table + kPlaces.greatest);
    __syncthreads();
    add_to_table(table + kPlaces.counts, counts, kPlaces.sums - kPlaces.counts);
    add_to_table(table + kPlaces.sums, sums, kPlaces.end - kPlaces.sums);
  });
}

// Adjacent threads of a warp use separate tables.
__global__ void __launch_bounds__(kNumberThreads) count_codes(DeviceSlab slab) {
  constexpr std::uint32_t kCopies = 4, kCodes = 256;
  __shared__ DeviceJob job;
  __shared__ unsigned int counts[kCopies * kCodes];
  const Item item = slab.items[blockIdx.x];
  clear_room(counts, kCopies * kCodes);
  copy_job(job, slab.jobs[item.job]);
  unsigned int* own = counts + threadIdx.x % kCopies * kCodes;
  std::uint32_t code = 0, run = 0;
  for_each_element_of_item<1>(slab, job, item, [&](std::uint64_t bits) {
    if (bits != code) {
      if (run != 0) shared_atomic_add(own + code, run);
      code = static_cast<std::uint32_t>(bits);
      run = 0;
    }
    ++run;
  });
  if (run != 0) shared_atomic_add(own + code, run);
  __syncthreads();
  // One thread per code.
  static_assert(kCodes == kNumberThreads);
  std::uint64_t sum = 0;
  for (std::uint32_t copy = 0; copy < kCopies; ++copy)
    sum += load_shared(counts + copy * kCodes + threadIdx.x);
  if (sum != 0) add_global(slab.numbers + job.target + threadIdx.x, sum);
}

__global__ void __launch_bounds__(kNumberThreads) count_zeros(DeviceSlab slab) {
  __shared__ DeviceJob job;
  __shared__ unsigned int zeros;
  const Item item = slab.items[blockIdx.x];
  clear_room(&zeros, 1);
  copy_job(job, slab.jobs[item.job]);
  const std::uint32_t size = job.source_size;
  const std::byte* begin = slab.in + job.source + std::int64_t{item.first} * size;
  unsigned int own = 0;
  for (std::uint32_t i = threadIdx.x; i < item.count; i += kNumberThreads) {
    const Element element = load_element(begin + std::size_t{i} * size, size);
    own += ((element.low | element.high) & job.magnitude_mask) == 0 ? 1 : 0;
  }
  if (own != 0) shared_atomic_add(&zeros, own);
  __syncthreads();
  add_to_table(slab.numbers + job.target, &zeros, 1);
}

}  // namespace

cudaError_t launch_statistics(Kernel kernel, const DeviceSlab& slab, std::uint32_t count,
                              cudaStream_t stream) {
  switch (kernel) {
    case Kernel::kNumbers1:
      return launch_blocks(count_codes, kNumberThreads, slab, count, stream);
    case Kernel::kNumbers2:
      return launch_blocks(count_numbers<2>, kNumberThreads, slab, count, stream);
    case Kernel::kNumbers4:
      return launch_blocks(count_numbers<4>, kNumberThreads, slab, count, stream);
    case Kernel::kNumbers8:
      return launch_blocks(count_numbers<8>, kNumberThreads, slab, count, stream);
    default:
      return launch_blocks(count_zeros, kNumberThreads, slab, count, stream);
  }
}

}  // namespace shw
