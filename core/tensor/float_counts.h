// Counts kinds of values in a float tensor (zeros, NaNs, denormals ...). Counts are integers, so
// the order of elements, chunks and threads does not matter.
#pragma once

#include <array>
#include <cstdint>

#include "core/base/bytes.h"
#include "core/tensor/dtype.h"

namespace shw {

struct FloatCounts {
  std::int64_t count = 0, nan = 0, infinite = 0, denormal = 0, zero = 0;
  std::int64_t huge = 0;  // finite, and at least 2^huge_power in magnitude

  FloatCounts& operator+=(const FloatCounts& other) {
    count += other.count;
    nan += other.nan;
    infinite += other.infinite;
    denormal += other.denormal;
    zero += other.zero;
    huge += other.huge;
    return *this;
  }
  friend bool operator==(const FloatCounts&, const FloatCounts&) = default;
};

// No weight is as large as 2^33 (8.6e9), or in float16, whose exponent bias is 15, as 2^13 (8192):
// one inverted exponent bit makes such numbers.
constexpr int huge_power(int exponent_bias) {
  return exponent_bias < 33 ? 13 : 33;
}

// True for little-endian float64, float32, float16 and bfloat16.
bool can_be_counted(Dtype dtype);

// Counts elements from a byte stream; an element may be split over two calls.
class FloatCounter {
 public:
  explicit FloatCounter(Dtype dtype) : dtype_(dtype) {}
  void add(BytesView bytes);
  void add_zeros(std::uint64_t bytes);
  const FloatCounts& counts() const { return counts_; }

 private:
  void add_whole(BytesView bytes);

  Dtype dtype_;
  FloatCounts counts_;
  std::array<std::byte, 8> begun_{};  // bytes of an incomplete element
  std::size_t held_ = 0;
};

}  // namespace shw
