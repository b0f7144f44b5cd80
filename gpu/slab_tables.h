// The jobs of a slab in the form that kernels take: a table of jobs, and for every
// kernel a table of items. An item is the work of one thread block, 32 to 256 KiB of a
// job, so that one launch per kernel processes all jobs, one large or fifty thousand
// small ones.
//
// The kernel of a job is chosen by its layouts alone:
//   rows       contiguous innermost dimension on both sides; moved in units of 16 bytes, or of the
//              largest power of two that divides all addresses and strides
//   fill       as rows, with a constant source
//   turn       contiguous along different dimensions: transposed in shared memory in squares of
//              256 bytes on both sides, 16 bytes at a time
//   turn_each  (up to 8 bytes) the remainder of a transposed plane next to such squares, planes at
//              odd addresses, and narrow ones: element by element, contiguous on both sides
//   separate   2, 4 or 8 interleaved parts of elements of up to 8 bytes, in whole vectors
//   interleave the inverse of separate
//   change     casts and scalings, contiguous on both sides
//   elements   everything else
//   scan       fingerprint of elements contiguous in memory and in their tensor
//   scan_each  fingerprint of other elements
//   numbers    value statistics in any order, one table per job (statistics_tables.h)
//   zeros      zeros of non-numeric dtypes
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/program/tile_job.h"
#include "gpu/fast_divisor.h"

namespace shw {

struct StatisticsJob;
struct SlabWork;
struct StatisticsSums;

// A dimension of a device job; strides in bytes, target strides of a scan in tensor words.
struct DeviceDim {
  std::uint32_t size = 1;
  FastDivisor by{};
  std::uint32_t unused = 0;
  std::int64_t source = 0, target = 0;
};

// A plain value that kernels copy to shared memory, four bytes per thread.
struct DeviceJob {
  std::int64_t source = 0, target = 0;  // position of the first unit
  std::uint32_t ndim = 0;
  // scan: contiguous words; scan_each: elements per unit; separate and interleave: parts
  std::uint32_t run = 0;
  ElementOp op = ElementOp::kCopy;
  Dtype from = Dtype::kUnknown, to = Dtype::kUnknown;
  std::uint8_t source_size = 0, target_size = 0;  // bytes per element
  std::uint8_t tile_shift[2] = {0, 0};  // turn_each: log2 of tile sides along source and target
  CastChain via{};
  float factor = 1;
  std::uint64_t constant[2] = {0, 0};
  // Outermost first. Transposed planes: the last two are contiguous in the source and in the
  // target.
  DeviceDim dims[kLayoutDims];
  std::uint32_t tiles[2] = {1, 1};  // transposed planes: tiles along the last two dims
  FastDivisor tiles_by[2];
  // scan_each: the dimension along which a thread proceeds; its entry above counts units, and `by`
  // divides by the number of adjacent units. separate and interleave: from part to part.
  DeviceDim along;
  // numbers: `source` is the first element, `target` the first word of the table.
  std::uint64_t elements = 0;
  std::uint64_t magnitude_mask = 0;  // zeros: bits that make an element non-zero
};
static_assert(sizeof(DeviceJob) % 8 == 0);

struct Item {
  std::uint32_t job = 0, first = 0, count = 0;  // units of the job, or tiles
};

// clang-format off: one family per line
enum class Kernel : std::uint8_t {
  // By bytes per unit:
  kRows1,
  kRows2,
  kRows4,
  kRows8,
  kRows16,
  kFill1,
  kFill2,
  kFill4,
  kFill8,
  kFill16,
  // By bytes per element:
  kTranspose1,
  kTranspose2,
  kTranspose4,
  kTranspose8,
  kTranspose16,
  kTransposeEach1,
  kTransposeEach2,
  kTransposeEach4,
  kTransposeEach8,
  kSeparate1,
  kSeparate2,
  kSeparate4,
  kSeparate8,
  kInterleave1,
  kInterleave2,
  kInterleave4,
  kInterleave8,
  // By bytes per element before and after:
  kChange1To1,
  kChange1To2,
  kChange1To4,
  kChange1To8,
  kChange2To1,
  kChange2To2,
  kChange2To4,
  kChange2To8,
  kChange4To1,
  kChange4To2,
  kChange4To4,
  kChange4To8,
  kChange8To1,
  kChange8To2,
  kChange8To4,
  kChange8To8,
  kElements,
  // By bytes per word:
  kFingerprint1,
  kFingerprint2,
  kFingerprint4,
  kFingerprintEach,
  // By bytes per element; 1-byte elements count every code:
  kNumbers1,
  kNumbers2,
  kNumbers4,
  kNumbers8,
  kZeros,
  kCount
};
// clang-format on

// True for kernels that write no elements but sums or count tables.
constexpr bool is_fingerprint_kernel(Kernel kernel) {
  return kernel >= Kernel::kFingerprint1 && kernel <= Kernel::kFingerprintEach;
}
constexpr bool is_statistics_kernel(Kernel kernel) {
  return kernel >= Kernel::kNumbers1;
}

// The kernel of a family for elements or units of 2^log bytes.
constexpr Kernel sized(Kernel first, unsigned log) {
  return static_cast<Kernel>(static_cast<unsigned>(first) + log);
}

inline constexpr std::uint32_t kRowThreads = 256;
inline constexpr std::uint32_t kRowUnits = 4096;         // per item: 64 KiB of 16-byte units
inline constexpr std::uint32_t kTransposeThreads = 256;  // 16 x 16 vectors
inline constexpr std::uint32_t kTransposeVectors = 16;
inline constexpr std::uint32_t kTransposeTiles = 4;  // per item
inline constexpr std::uint32_t kTransposeEachBytes =
    16384;  // per tile, elements of 4 bytes or more
inline constexpr std::uint32_t kTransposeEachElements = 4096;  // per tile, for narrower elements
inline constexpr std::uint32_t kElementUnits = 4096;           // per item
inline constexpr std::uint32_t kFingerprintThreads = 128;      // each processes blocks of 64 words
inline constexpr std::uint32_t kFingerprintBlocks = 512;       // per item
inline constexpr std::uint32_t kFingerprintUnits = 512;  // per item, of up to 64 elements each
inline constexpr std::uint32_t kNumberThreads = 256;
// Elements per item, limited so that sums fit in the words of statistics_tables.h.
inline constexpr std::uint32_t kCodeElements = 1 << 18;    // 1 byte
inline constexpr std::uint32_t kNumberElements = 1 << 16;  // 2 and 4 bytes
inline constexpr std::uint32_t kWideElements = 1 << 15;    // 8 and 16 bytes

// Vector size in bytes for transposed planes.
constexpr std::uint32_t transpose_vector_bytes(std::uint32_t element) {
  return element == 1 ? 8 : 16;
}

// Bytes of the interleaved side that a thread moves at a time: whole vectors, and pieces of 4 bytes
// or more of each part.
constexpr std::uint32_t interleaved_unit(std::uint32_t element, std::uint32_t parts) {
  const std::uint32_t unit = parts * (element < 4 ? 4 : element);
  return unit < 16 ? 16 : unit;
}

// Elements per tile of turn_each.
constexpr std::uint32_t transpose_each_elements(std::uint32_t element) {
  return element < 4 ? kTransposeEachElements : kTransposeEachBytes / element;
}

// The count table of a StatisticsJob, in 64-bit words.
struct StatisticsTable {
  std::uint64_t begin = 0, words = 0;
  Dtype dtype = Dtype::kUnknown;
  std::uint64_t elements = 0;
  StatisticsSums* sums = nullptr;
};

struct SlabTables {
  std::vector<DeviceJob> jobs;
  std::vector<StatisticsTable> numbers;
  std::uint64_t number_words = 0;  // of all tables
  std::array<std::vector<Item>, static_cast<std::size_t>(Kernel::kCount)> items;

  void clear();
  std::vector<Item>& of(Kernel kernel) { return items[static_cast<std::size_t>(kernel)]; }
  const std::vector<Item>& of(Kernel kernel) const {
    return items[static_cast<std::size_t>(kernel)];
  }
};

// Jobs from the input slab to the output slab, both 256-byte aligned.
void add_tiles(SlabTables& tables, std::span<const TileJob> jobs);
// Fingerprint jobs on the input slab; their targets are tensor indices in
// elements.
void add_fingerprints(SlabTables& tables, std::span<const TileJob> jobs);
// Counting jobs on the input slab.
void add_numbers(SlabTables& tables, std::span<const StatisticsJob> jobs);

// Adds all work on a slab.
void add_slab_work_to_tables(SlabTables& tables, const SlabWork& work);

}  // namespace shw
