// Fingerprints of the input slab (core/tensor/fingerprint.h), in a kernel of their own: a run is
// proved by two independent computations, and a kernel that moved elements wrongly would also
// weight them wrongly.
//
// Blocks of 64 tensor words are read contiguously, 16 bytes per thread, into shared memory;
// positions outside the run are zeros, which add nothing. Then each thread processes one block, so
// that the two products modulo 2^61 - 1 are computed once per 64 words. Vector c of block b is
// swizzled so that eight neighbours use all 32 banks.
#include "gpu/convert.cuh"

namespace shw {
namespace {

constexpr std::uint32_t kWordsOfBlock = kFingerprintBlock;

// Reduces the sums of all threads and stores the item's result.
__device__ __forceinline__ void reduce_and_store(const DeviceSlab& slab, Fingerprint own,
                                                 Fingerprint* room) {
  Fingerprint* const place = room + threadIdx.x;
  store_shared(place, own);
  for (std::uint32_t half = blockDim.x / 2; half != 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x >= half) continue;
    own += load_shared(place + half);
    store_shared(place, own);
  }
  if (threadIdx.x == 0) slab.sums[blockIdx.x] = own;
}

template <int kWord>
struct BlockVectors {
  static constexpr std::uint32_t kCount = kWordsOfBlock * kWord / 16;
  static constexpr std::uint32_t kIn = 16 / kWord;  // in words
  // Blocks that fit side by side in all banks.
  static constexpr std::uint32_t kConcurrent = kCount >= 8 ? 1 : 8 / kCount;
  static __device__ __forceinline__ std::uint32_t place(std::uint32_t block, std::uint32_t vector) {
    return block * kCount + (vector ^ (block / kConcurrent & ((kCount < 8 ? kCount : 8) - 1)));
  }
};

// Vector `vector` of the 64-word block at tensor word `begin`, for a run that begins at tensor word
// `run.target` and at address `run.source`.
template <int kWord>
__device__ __forceinline__ uint4 vector_of(const DeviceSlab& slab, const Spot& run,
                                           std::uint32_t length, std::int64_t begin) {
  constexpr std::int64_t kIn = 16 / kWord;
  const std::int64_t first = begin - run.target;  // in words of the run
  const std::byte* at = slab.in + run.source + first * kWord;
  if (first >= 0 && first + kIn <= length) return load_once<16>(at);
  unsigned int words[4] = {0, 0, 0, 0};
#pragma unroll
  for (int i = 0; i < kIn; ++i) {
    if (first + i < 0 || first + i >= length) continue;
    words[i * kWord / 4] |= static_cast<unsigned int>(load_once<kWord>(at + i * kWord))
                            << (i * kWord % 4 * 8);
  }
  return make_uint4(words[0], words[1], words[2], words[3]);
}

// Adds the words of one vector; `kFirst` is the position of its first word in the block.
template <int kWord, int kFirst>
__device__ __forceinline__ void add_weighted_words(const uint4& vector, std::uint64_t& a,
                                                   std::uint64_t& b) {
  const unsigned int words[4] = {vector.x, vector.y, vector.z, vector.w};
#pragma unroll
  for (int i = 0; i < 16 / kWord; ++i) {
    unsigned int word = words[i * kWord / 4];
    if constexpr (kWord < 4) word = word >> (i * kWord % 4 * 8) & ((1u << kWord * 8) - 1);
    a += std::uint64_t{word_weight(0, static_cast<std::uint32_t>(kFirst + i))} * word;
    b += std::uint64_t{word_weight(1, static_cast<std::uint32_t>(kFirst + i))} * word;
  }
}

template <int kWord, int kVector = 0>
__device__ __forceinline__ void add_weighted_block(const uint4* room, std::uint32_t block,
                                                   std::uint64_t& a, std::uint64_t& b) {
  if constexpr (kVector < static_cast<int>(BlockVectors<kWord>::kCount)) {
    const uint4 vector = load_shared(room + BlockVectors<kWord>::place(block, kVector));
    add_weighted_words<kWord, kVector * 16 / kWord>(vector, a, b);
    add_weighted_block<kWord, kVector + 1>(room, block, a, b);
  }
}

// The tensor blocks that 128 threads process at a time: several rows, or part of one.
template <int kWord>
struct ScanFingerprint {
  const DeviceSlab& slab;
  const DeviceJob& job;
  std::uint32_t first, count;  // units

  // The row of a unit and its tensor block.
  __device__ __forceinline__ Spot run_of(std::uint32_t unit, std::int64_t& block) const {
    const DeviceDim& row = job.dims[job.ndim - 1];
    const std::uint32_t number = divided(unit, row.by);
    const Spot run = unit_position(job, job.ndim - 1, number);
    block = run.target / kWordsOfBlock + (unit - number * row.size);
    return run;
  }
  // Begin of these units if they are contiguous in the slab; null if not, or if one extends beyond
  // the run.
  __device__ __forceinline__ const std::byte* straight() const {
    std::int64_t begin, end;
    const Spot run = run_of(first, begin), last = run_of(first + kFingerprintThreads - 1, end);
    const std::int64_t skipped = begin * kWordsOfBlock - run.target;
    const bool whole = count >= kFingerprintThreads && last.source == run.source && skipped >= 0 &&
                       (end + 1) * kWordsOfBlock - run.target <= job.run;
    return whole ? slab.in + run.source + skipped * kWord : nullptr;
  }
};

template <int kWord>
__device__ __forceinline__ void read_blocks(const ScanFingerprint<kWord>& pass, uint4* room) {
  using Of = BlockVectors<kWord>;
  constexpr std::uint32_t kHeld = Of::kCount < 8 ? Of::kCount : 8;
  const std::byte* straight = pass.straight();
  for (std::uint32_t part = 0; part < Of::kCount; part += kHeld) {
    uint4 held[kHeld];
    const std::uint32_t begin = part * kFingerprintThreads + threadIdx.x;
    if (straight != nullptr) {
#pragma unroll
      for (std::uint32_t i = 0; i < kHeld; ++i)
        held[i] = load_once<16>(straight + (begin + i * kFingerprintThreads) * 16);
    } else {
      for (std::uint32_t i = 0; i < kHeld; ++i) {
        const std::uint32_t at = begin + i * kFingerprintThreads, unit = at / Of::kCount;
        uint4 vector = make_uint4(0, 0, 0, 0);
        if (unit < pass.count) {
          std::int64_t block;
          const Spot run = pass.run_of(pass.first + unit, block);
          vector = vector_of<kWord>(pass.slab, run, pass.job.run,
                                    block * kWordsOfBlock + at % Of::kCount * Of::kIn);
        }
        store_shared(&room[Of::place(unit, at % Of::kCount)], vector);
      }
      continue;
    }
#pragma unroll
    for (std::uint32_t i = 0; i < kHeld; ++i) {
      const std::uint32_t at = begin + i * kFingerprintThreads;
      store_shared(&room[Of::place(at / Of::kCount, at % Of::kCount)], held[i]);
    }
  }
}

template <int kWord>
__global__ void __launch_bounds__(kFingerprintThreads) scan_rows(DeviceSlab slab) {
  using Of = BlockVectors<kWord>;
  __shared__ DeviceJob job;
  __shared__ uint4 room[kFingerprintThreads * Of::kCount];
  const Item item = slab.items[blockIdx.x];
  copy_job(job, slab.jobs[item.job]);
  Fingerprint sum;
  for (std::uint32_t done = 0; done < item.count; done += kFingerprintThreads) {
    const ScanFingerprint<kWord> pass{slab, job, item.first + done, item.count - done};
    read_blocks(pass, room);
    __syncthreads();
    if (threadIdx.x < pass.count) {
      std::int64_t block;
      pass.run_of(pass.first + threadIdx.x, block);
      std::uint64_t a = 0, b = 0;
      add_weighted_block<kWord>(room, threadIdx.x, a, b);
      add_block(sum, static_cast<std::uint64_t>(block), a, b);
    }
    __syncthreads();
  }
  reduce_and_store(slab, sum, reinterpret_cast<Fingerprint*>(room));
}

// Element by element: a thread proceeds along the tensor and computes the two products when it
// enters the next block.
__global__ void __launch_bounds__(kRowThreads) fingerprint_elements(DeviceSlab slab) {
  __shared__ DeviceJob job;
  __shared__ uint4 room[kRowThreads];
  __shared__ uint2 weights[kWordsOfBlock];
  if (threadIdx.x < kWordsOfBlock)
    weights[threadIdx.x] = make_uint2(word_weight(0, threadIdx.x), word_weight(1, threadIdx.x));
  const Item item = slab.items[blockIdx.x];
  copy_job(job, slab.jobs[item.job]);
  Fingerprint sum;
  const auto words = static_cast<std::uint32_t>(fingerprint_words_per_element(job.target_size));
  for (std::uint32_t i = threadIdx.x; i < item.count; i += kRowThreads) {
    Spot at = unit_position(job, job.ndim, item.first + i);
    const std::uint32_t skipped = divided(item.first + i, job.along.by) * job.run;
    const std::uint32_t left = job.along.size - skipped;
    auto number = static_cast<std::uint64_t>(at.target);
    std::uint64_t block = number / kWordsOfBlock, a = 0, b = 0;
    for (std::uint32_t e = 0; e < left && e < job.run; ++e, at.source += job.along.source) {
      Element element = converted_element(job, slab.in + at.source);
      for (std::uint32_t part = 0; part < words; ++part, ++number) {
        if (number / kWordsOfBlock != block) {
          add_block(sum, block, a, b);
          block = number / kWordsOfBlock;
          a = b = 0;
        }
        const uint2 weight = weights[number % kWordsOfBlock];
        a += std::uint64_t{weight.x} * static_cast<std::uint32_t>(element.low);
        b += std::uint64_t{weight.y} * static_cast<std::uint32_t>(element.low);
        element.low = element.low >> 32 | element.high << 32;
        element.high >>= 32;
      }
    }
    add_block(sum, block, a, b);
  }
  reduce_and_store(slab, sum, reinterpret_cast<Fingerprint*>(room));
}

}  // namespace

cudaError_t launch_fingerprint(Kernel kernel, const DeviceSlab& slab, std::uint32_t count,
                               cudaStream_t stream) {
  switch (kernel) {
    case Kernel::kFingerprint1:
      return launch_blocks(scan_rows<1>, kFingerprintThreads, slab, count, stream);
    case Kernel::kFingerprint2:
      return launch_blocks(scan_rows<2>, kFingerprintThreads, slab, count, stream);
    case Kernel::kFingerprint4:
      return launch_blocks(scan_rows<4>, kFingerprintThreads, slab, count, stream);
    default:
      return launch_blocks(fingerprint_elements, kRowThreads, slab, count, stream);
  }
}

}  // namespace shw
