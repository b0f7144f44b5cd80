// The tables of StatisticsCounter, one class per kind of dtype.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/base/bytes.h"
#include "core/tensor/statistics.h"

namespace shw {

// Counts 16-bit codes; single bytes are counted in pairs. Uses several tables in turn, so that
// equal neighbours (zeros, constants) do not wait for each other's store.
class CodeTable {
 public:
  CodeTable() : counts_(kTables * kStride, 0) {}
  void clear();
  bool is_empty() const { return pending_ == 0; }
  void add(BytesView bytes, std::size_t width, StatisticsSums& sums);
  void move_to(StatisticsSums& sums, std::size_t width);

 private:
  static constexpr std::size_t kTables = 4;
  // One extra cache line: stores at equal page offsets would block loads of the other tables.
  static constexpr std::size_t kStride = 0x10000 + 16;
  std::vector<std::uint32_t> counts_;
  std::uint64_t pending_ = 0;  // elements held in 32-bit counters
};

// Per sign and exponent: number of elements, sum of magnitudes and sum of squares.
struct ExponentBucket {
  std::uint64_t count = 0;
  Uint128 magnitudes = 0, squares = 0;
};

class Float32Table {
 public:
  Float32Table() : entries_(kTables * kStride), buckets_(kCodes) {}
  void clear();
  // Adds at most 2^16 elements per call.
  void add(BytesView bytes, StatisticsSums& sums);
  void move_to(StatisticsSums& sums);

 private:
  static constexpr std::size_t kTables = 4, kCodes = 1 << 9, kStride = kCodes + 4;
  // count * 2^40 + sum of magnitudes, and sum of squares, for at most 2^16 elements.
  struct Entry {
    std::uint64_t packed = 0, squares = 0;
  };
  void scatter(BytesView bytes);
  void finalize();

  std::vector<Entry> entries_;
  std::vector<ExponentBucket> buckets_;
  std::size_t pending_ = 0;
};

class Float64Table {
 public:
  Float64Table() : entries_(kTables * kStride) {}
  void clear();
  void add(BytesView bytes, StatisticsSums& sums);
  void move_to(StatisticsSums& sums);

 private:
  static constexpr std::size_t kTables = 2, kCodes = 1 << 12, kStride = kCodes + 2;
  // count * 2^84 + sum of magnitudes, and sum of squares, for at most 2^22 elements.
  struct Entry {
    Uint128 packed = 0, squares = 0;
  };
  void scatter(BytesView bytes);

  std::vector<Entry> entries_;
  std::size_t pending_ = 0;
};

// Adds elements of int32, int64, uint32 or uint64.
void add_integers(BytesView bytes, StatisticsSums& sums);

}  // namespace shw
