#include "core/tensor/float_counts.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/tensor/cpu_clones.h"

namespace shw {
namespace {

// Bits are signed integers: without the sign bit they are never negative, and signed comparisons
// are faster.
template <class Bits, int mantissa_bits>
struct FloatThresholds {
  static constexpr Bits kMagnitude = std::numeric_limits<Bits>::max();
  static constexpr Bits kNormal = static_cast<Bits>(Bits{1} << mantissa_bits);  // the least
  static constexpr Bits kInfinity = static_cast<Bits>(kMagnitude - (kNormal - 1));
  static constexpr int kBias = (1 << (static_cast<int>(sizeof(Bits)) * 8 - 2 - mantissa_bits)) - 1;
  static constexpr auto kHuge =  // the least
      static_cast<Bits>(static_cast<Bits>(kBias + huge_power(kBias)) * kNormal);
};

template <class Bits>
[[gnu::always_inline]] inline Bits bits_at(const std::byte* at, std::size_t i) {
  Bits bits;
  std::memcpy(&bits, at + i * sizeof(Bits), sizeof(Bits));
  return static_cast<Bits>(bits & std::numeric_limits<Bits>::max());
}

// True if all elements are normal and below the huge ones, as nearly all weights are; one
// comparison per element. Values below the least normal number wrap around to large ones.
template <class Bits, int mantissa_bits>
[[gnu::always_inline]] inline bool are_ordinary(const std::byte* at, std::size_t size) {
  using Of = FloatThresholds<Bits, mantissa_bits>;
  using Wrapping = std::make_unsigned_t<Bits>;
  constexpr Bits kLowest = std::numeric_limits<Bits>::min();
  constexpr auto kShift = static_cast<Wrapping>(Wrapping(kLowest) - Wrapping(Of::kNormal));
  constexpr auto kGreatest = static_cast<Bits>(kLowest + (Of::kHuge - 1 - Of::kNormal));
  Bits others = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const auto shifted =
        static_cast<Bits>(static_cast<Wrapping>(Wrapping(bits_at<Bits>(at, i)) + kShift));
    others = static_cast<Bits>(others | (shifted > kGreatest));
  }
  return others == 0;
}

// Branch-free, with counters as wide as an element, so that the compiler vectorises; a 16-bit
// counter is enough for 4 KiB.
template <class Bits, int mantissa_bits>
[[gnu::always_inline]] inline FloatCounts count(BytesView bytes) {
  constexpr std::size_t kAtOnce = 4096 / sizeof(Bits);
  using Of = FloatThresholds<Bits, mantissa_bits>;
  constexpr Bits kNormal = Of::kNormal, kHuge = Of::kHuge, kInfinity = Of::kInfinity;
  FloatCounts out;
  const std::size_t size = bytes.size() / sizeof(Bits);
  out.count = static_cast<std::int64_t>(size);
  for (std::size_t begin = 0; begin < size; begin += kAtOnce) {
    Bits nan = 0, infinite = 0, large = 0, small = 0, zero = 0;
    const std::byte* at = bytes.data() + begin * sizeof(Bits);
    const std::size_t here = std::min(kAtOnce, size - begin);
    if (are_ordinary<Bits, mantissa_bits>(at, here)) continue;
    for (std::size_t i = 0; i < here; ++i) {
      const Bits bits = bits_at<Bits>(at, i);
      nan = static_cast<Bits>(nan + (bits > kInfinity));
      infinite = static_cast<Bits>(infinite + (bits == kInfinity));
      large = static_cast<Bits>(large + (bits >= kHuge));
      small = static_cast<Bits>(small + (bits < kNormal));
      zero = static_cast<Bits>(zero + (bits == 0));
    }
    out.nan += nan;
    out.infinite += infinite;
    out.huge += large - infinite - nan;
    out.denormal += small - zero;
    out.zero += zero;
  }
  return out;
}

SHW_CPU_CLONES FloatCounts count_float64(BytesView bytes) {
  return count<std::int64_t, 52>(bytes);
}
SHW_CPU_CLONES FloatCounts count_float32(BytesView bytes) {
  return count<std::int32_t, 23>(bytes);
}
SHW_CPU_CLONES FloatCounts count_float16(BytesView bytes) {
  return count<std::int16_t, 10>(bytes);
}
SHW_CPU_CLONES FloatCounts count_bfloat16(BytesView bytes) {
  return count<std::int16_t, 7>(bytes);
}

}  // namespace

bool can_be_counted(Dtype dtype) {
  return dtype == Dtype::kFloat64 || dtype == Dtype::kFloat32 || dtype == Dtype::kFloat16 ||
         dtype == Dtype::kBfloat16;
}

void FloatCounter::add_whole(BytesView bytes) {
  switch (dtype_) {
    case Dtype::kFloat64:
      counts_ += count_float64(bytes);
      break;
    case Dtype::kFloat32:
      counts_ += count_float32(bytes);
      break;
    case Dtype::kFloat16:
      counts_ += count_float16(bytes);
      break;
    case Dtype::kBfloat16:
      counts_ += count_bfloat16(bytes);
      break;
    default:
      break;
  }
}

void FloatCounter::add(BytesView bytes) {
  const std::size_t width = size_of(dtype_);
  if (!can_be_counted(dtype_)) return;
  if (held_ != 0) {
    std::size_t more = std::min(width - held_, bytes.size());
    std::copy_n(bytes.begin(), more, begun_.begin() + static_cast<std::ptrdiff_t>(held_));
    held_ += more;
    bytes = bytes.subspan(more);
    if (held_ < width) return;
    add_whole(std::span(begun_).first(width));
    held_ = 0;
  }
  const std::size_t whole = bytes.size() / width * width;
  add_whole(bytes.first(whole));
  held_ = bytes.size() - whole;
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(whole), held_, begun_.begin());
}

void FloatCounter::add_zeros(std::uint64_t bytes) {
  constexpr std::array<std::byte, 8> kZeros{};
  const std::size_t width = size_of(dtype_);
  if (!can_be_counted(dtype_)) return;
  if (held_ != 0) {
    auto more = static_cast<std::size_t>(std::min<std::uint64_t>(width - held_, bytes));
    add(std::span(kZeros).first(more));
    bytes -= more;
  }
  auto elements = static_cast<std::int64_t>(bytes / width);
  counts_.count += elements;
  counts_.zero += elements;
  add(std::span(kZeros).first(static_cast<std::size_t>(bytes % width)));
}

}  // namespace shw
