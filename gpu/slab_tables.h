// The jobs of a slab as kernels take them: a table of jobs and, for every kernel, a table of items.
// An item is what one block of threads does, 32 to 256 KiB of a job, so that one launch of each
// kernel does all of its jobs, one large one or fifty thousand small ones.
//
// Which kernel a job goes to is a matter of its layouts alone (spec/gpu.md B3):
//   rows       the innermost dimension lies side by side on both sides; moved in units of 16 bytes,
//              or as many as all addresses and strides are multiples of
//   fill       the same with a constant in place of a source
//   turn       side by side along different dimensions: through shared memory, in squares that are
//              256 bytes wide on both sides, 16 bytes at a time
//   turn_each  (of at most 8 bytes) what is left of a turned plane beside such squares, or begins
//   at odd addresses, or
//              is narrow (de-interleaving): element by element, but side by side on both sides
//   change     casts and scalings of what lies side by side on both sides
//   elements   anything else
//   scan       the fingerprint of elements that lie side by side in memory as in their tensor
//   scan_each  of others
//   numbers    what elements are like, which may lie in any order: one table a job
//   (number_tables.h) zeros      of dtypes that are no numbers
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/program/tile_job.h"
#include "gpu/fast_divisor.h"

namespace shw {

struct NumberJob;
struct SlabWork;
struct StatisticsSums;

// A dimension of a device job; strides in bytes, of a scan the target's in words of the tensor.
struct DeviceDim {
  std::uint32_t size = 1;
  FastDivisor by{};
  std::uint32_t unused = 0;
  std::int64_t source = 0, target = 0;
};

// A plain value that a kernel copies to shared memory, four bytes a thread.
struct DeviceJob {
  std::int64_t source = 0, target = 0;  // where the first unit begins
  std::uint32_t ndim = 0;
  std::uint32_t run = 0;  // of a scan: words side by side; of scan_each: elements of a unit
  ElementOp op = ElementOp::kCopy;
  Dtype from = Dtype::kUnknown, to = Dtype::kUnknown;
  std::uint8_t source_size = 0, target_size = 0;  // of an element
  std::uint8_t tile_shift[2] = {0, 0};  // of turn_each: 2^this elements along source and target
  Hops via{};
  float factor = 1;
  std::uint64_t constant[2] = {0, 0};
  // Outermost first. Of turned planes the last two are the one along which the source, and the one
  // along which the target lies side by side.
  DeviceDim dims[kLayoutDims];
  std::uint32_t tiles[2] = {1, 1};  // of turned planes: along those two
  FastDivisor tiles_by[2];
  // Of scan_each: the dimension that a thread goes along; its first one above counts units of it,
  // and `by` divides by the units that stand side by side.
  DeviceDim along;
  // Of numbers: `source` is where the elements begin, `target` the first word of their table.
  std::uint64_t elements = 0;
  std::uint64_t magnitude_mask = 0;  // of zeros: the bits that make an element more than zero
};
static_assert(sizeof(DeviceJob) % 8 == 0);

struct Item {
  std::uint32_t job = 0, first = 0, count = 0;  // units of the job, or tiles
};

// clang-format off: a family a line
enum class Kernel : std::uint8_t {
  // By the bytes of a unit.
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
  // By the bytes of an element.
  kTurn1,
  kTurn2,
  kTurn4,
  kTurn8,
  kTurn16,
  kTurnEach1,
  kTurnEach2,
  kTurnEach4,
  kTurnEach8,
  // By the bytes of an element before and after.
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
  // By the bytes of a word.
  kScan1,
  kScan2,
  kScan4,
  kScanEach,
  // By the bytes of an element; of one byte every code is counted.
  kNumbers1,
  kNumbers2,
  kNumbers4,
  kNumbers8,
  kZeros,
  kCount
};
// clang-format on

// Those that make no elements: of sums, and of tables of numbers.
constexpr bool is_scan(Kernel kernel) {
  return kernel >= Kernel::kScan1 && kernel <= Kernel::kScanEach;
}
constexpr bool is_numbers(Kernel kernel) {
  return kernel >= Kernel::kNumbers1;
}

// The kernel of a family for elements or units of 2^log bytes.
constexpr Kernel sized(Kernel first, unsigned log) {
  return static_cast<Kernel>(static_cast<unsigned>(first) + log);
}

inline constexpr std::uint32_t kRowThreads = 256;
inline constexpr std::uint32_t kRowUnits = 4096;    // of an item: 64 KiB of 16 bytes
inline constexpr std::uint32_t kTurnThreads = 256;  // 16 x 16 vectors
inline constexpr std::uint32_t kTurnVectors = 16;
inline constexpr std::uint32_t kTurnTiles = 4;            // of an item
inline constexpr std::uint32_t kTurnEachBytes = 16384;    // of a tile, of elements of 4 or more
inline constexpr std::uint32_t kTurnEachElements = 4096;  // of narrower ones
inline constexpr std::uint32_t kElementUnits = 4096;      // of an item
inline constexpr std::uint32_t kScanThreads = 128;        // each does a block of 64 words at a time
inline constexpr std::uint32_t kScanBlocks = 512;         // of an item
inline constexpr std::uint32_t kScanUnits = 512;          // of an item, of up to 64 elements
inline constexpr std::uint32_t kNumberThreads = 256;
// Elements of an item: sums of it fit the words that number_tables.h gives them.
inline constexpr std::uint32_t kCodeElements = 1 << 18;    // of one byte
inline constexpr std::uint32_t kNumberElements = 1 << 16;  // of 2 and 4 bytes
inline constexpr std::uint32_t kWideElements = 1 << 15;    // of 8 and 16

// Bytes of a vector that a turned plane is moved in.
constexpr std::uint32_t turn_vector(std::uint32_t element) {
  return element == 1 ? 8 : 16;
}

// Elements of a tile of turn_each.
constexpr std::uint32_t turn_each_elements(std::uint32_t element) {
  return element < 4 ? kTurnEachElements : kTurnEachBytes / element;
}

// Where the numbers of a NumberJob are counted: words of 64 bits.
struct NumberTable {
  std::uint64_t begin = 0, words = 0;
  Dtype dtype = Dtype::kUnknown;
  std::uint64_t elements = 0;
  StatisticsSums* sums = nullptr;
};

struct SlabTables {
  std::vector<DeviceJob> jobs;
  std::vector<NumberTable> numbers;
  std::uint64_t number_words = 0;  // of all of them
  std::array<std::vector<Item>, static_cast<std::size_t>(Kernel::kCount)> items;

  void clear();
  std::vector<Item>& of(Kernel kernel) { return items[static_cast<std::size_t>(kernel)]; }
  const std::vector<Item>& of(Kernel kernel) const {
    return items[static_cast<std::size_t>(kernel)];
  }
};

// Jobs from the slab that was read to the one that is made; both begin at multiples of 256 bytes.
void add_tiles(SlabTables& tables, std::span<const TileJob> jobs);
// What the fingerprint of a slab that was read is made of: the targets of these jobs are indices in
// the tensor, in elements.
void add_scans(SlabTables& tables, std::span<const TileJob> jobs);
// What is counted of the slab that was read.
void add_numbers(SlabTables& tables, std::span<const NumberJob> jobs);

// All that becomes of a slab.
void add_work(SlabTables& tables, const SlabWork& work);

}  // namespace shw
