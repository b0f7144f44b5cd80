#include "core/tensor/statistics_tables.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/tensor/cpu_clones.h"
#include "core/tensor/float_counts.h"
#include "core/tensor/number_form.h"

namespace shw {
namespace {

template <class Bits>
[[gnu::always_inline]] inline Bits bits_of(const std::byte* bytes, std::size_t i) {
  Bits bits;
  std::memcpy(&bits, bytes + i * sizeof(Bits), sizeof(Bits));
  return bits;
}

// Least and greatest value, without NaN, as integer keys that sort like the floats (order_key).
struct Range {
  std::int64_t least, greatest;
};

// Branch-free, so that the compiler vectorises. Keys of NaN are beyond those of the infinities and
// are masked out.
template <class Bits, int mantissa_bits>
[[gnu::always_inline]] inline Range range(BytesView bytes) {
  constexpr Bits kMost = std::numeric_limits<Bits>::max(), kLeast = ~kMost;
  constexpr Bits kInfinity = kMost - ((Bits{1} << mantissa_bits) - 1);
  Bits least = kMost, greatest = kLeast;
  const std::size_t size = bytes.size() / sizeof(Bits);
  for (std::size_t i = 0; i < size; ++i) {
    auto bits = bits_of<Bits>(bytes.data(), i);
    Bits key = bits ^ ((bits >> (sizeof(Bits) * 8 - 1)) & kMost);
    // Masks instead of two conditionals, which GCC 12 does not vectorise.
    Bits below = -static_cast<Bits>(key < ~kInfinity), above = -static_cast<Bits>(key > kInfinity);
    least = std::min(least, (key & ~below) | (kMost & below));
    greatest = std::max(greatest, (key & ~above) | (kLeast & above));
  }
  return {least, greatest};
}

SHW_CPU_CLONES Range range_of_float32(BytesView bytes) {
  return range<std::int32_t, 23>(bytes);
}
SHW_CPU_CLONES Range range_of_float64(BytesView bytes) {
  return range<std::int64_t, 52>(bytes);
}

// Denormals have many powers of two in one exponent.
template <class Bits, int mantissa_bits>
void add_denormal_powers(BytesView bytes, StatisticsSums& sums) {
  std::array<std::array<std::uint64_t, 64>, 2> powers{};
  for (std::size_t i = 0; i < bytes.size() / sizeof(Bits); ++i) {
    auto bits = bits_of<Bits>(bytes.data(), i);
    Bits magnitude = bits & (std::numeric_limits<Bits>::max() >> 1);
    if (magnitude == 0 || magnitude >> mantissa_bits != 0) continue;
    ++powers[magnitude != bits][static_cast<std::size_t>(std::bit_width(magnitude) - 1)];
  }
  for (std::size_t side = 0; side < 2; ++side) {
    for (std::size_t power = 0; power < 64; ++power) {
      auto& counts = sums.by_power[side];
      if (powers[side][power] == 0) continue;
      if (counts.size() <= power) counts.resize(power + 1);
      counts[power] += powers[side][power];
    }
  }
}

// Counts special values of a block and its minimum and maximum, which the table lacks.
template <class Bits, int mantissa_bits>
void add_special_counts_and_range(BytesView bytes, Range range, StatisticsSums& sums) {
  constexpr Bits kSign = Bits{1} << (sizeof(Bits) * 8 - 1);
  FloatCounter counter(sums.dtype);
  counter.add(bytes);
  const FloatCounts& counts = counter.counts();
  sums.elements += static_cast<std::uint64_t>(counts.count);
  sums.nan += static_cast<std::uint64_t>(counts.nan);
  sums.infinite += static_cast<std::uint64_t>(counts.infinite);
  sums.denormal += static_cast<std::uint64_t>(counts.denormal);
  sums.zero += static_cast<std::uint64_t>(counts.zero);
  if (counts.nan != counts.count) {
    sums.least = std::min<std::uint64_t>(sums.least, static_cast<Bits>(range.least) ^ kSign);
    sums.greatest =
        std::max<std::uint64_t>(sums.greatest, static_cast<Bits>(range.greatest) ^ kSign);
  }
  if (counts.denormal != 0) add_denormal_powers<Bits, mantissa_bits>(bytes, sums);
}

// Adds the sums of one exponent. Exponent 0 holds zeros and denormals, which were added as if they
// had the implied bit; the last exponent (NaN, infinities) is counted elsewhere.
void add_bucket(StatisticsSums& sums, const NarrowFloat& form, std::size_t index,
                ExponentBucket bucket) {
  const auto last = (1 << form.exponent_bits) - 1;
  const auto side = index >> form.exponent_bits;
  const auto exponent = static_cast<int>(index) & last;
  if (bucket.count == 0 || exponent == last) return;
  if (exponent == 0) {
    // sum (f + i)^2 = sum f^2 + 2 i sum f + count i^2
    const Uint128 implied = Uint128{1} << form.mantissa_bits;
    bucket.magnitudes -= implied * bucket.count;
    bucket.squares -= 2 * implied * bucket.magnitudes + implied * implied * bucket.count;
  } else {
    auto at = static_cast<std::size_t>(exponent - 1 + form.mantissa_bits);
    if (sums.by_power[side].size() <= at) sums.by_power[side].resize(at + 1);
    sums.by_power[side][at] += bucket.count;
  }
  const int power = std::max(exponent - 1, 0);
  add(sums.sums[side], bucket.magnitudes, power);
  add(sums.squares, bucket.squares, 2 * power);
}

}  // namespace

void CodeTable::clear() {
  if (pending_ != 0) std::fill(counts_.begin(), counts_.end(), 0u);
  pending_ = 0;
}

void CodeTable::add(BytesView bytes, std::size_t width, StatisticsSums& sums) {
  constexpr std::size_t kAtOnce = std::size_t{1} << 30;
  for (std::size_t done = 0; done < bytes.size(); done += kAtOnce) {
    BytesView part = bytes.subspan(done, std::min(kAtOnce, bytes.size() - done));
    if (pending_ + part.size() > std::numeric_limits<std::uint32_t>::max()) move_to(sums, width);
    pending_ += part.size();
    std::uint32_t* counts = counts_.data();
    std::size_t eights = part.size() / 8;
    for (std::size_t i = 0; i < eights; ++i) {
      auto four = bits_of<std::uint64_t>(part.data(), i);
      ++counts[four & 0xFFFF];
      ++counts[kStride + (four >> 16 & 0xFFFF)];
      ++counts[2 * kStride + (four >> 32 & 0xFFFF)];
      ++counts[3 * kStride + (four >> 48)];
    }
    for (std::size_t at = eights * 8; at < part.size(); at += width) {
      std::uint64_t code = 0;
      std::memcpy(&code, part.data() + at, width);
      add_elements(sums, code, 1);
    }
  }
}

void CodeTable::move_to(StatisticsSums& sums, std::size_t width) {
  if (pending_ == 0) return;
  pending_ = 0;
  std::array<std::uint64_t, 256> singles{};
  for (std::size_t code = 0; code < 0x10000; ++code) {
    std::uint64_t count = 0;
    for (std::size_t table = 0; table < kTables; ++table) {
      count += counts_[table * kStride + code];
      counts_[table * kStride + code] = 0;
    }
    if (count == 0) continue;
    if (width == 2) {
      add_elements(sums, code, count);
    } else {
      singles[code & 0xFF] += count;
      singles[code >> 8] += count;
    }
  }
  for (std::size_t code = 0; code < singles.size(); ++code) {
    if (singles[code] != 0) add_elements(sums, code, singles[code]);
  }
}

void Float32Table::clear() {
  if (pending_ == 0) return;
  std::fill(entries_.begin(), entries_.end(), Entry{});
  std::fill(buckets_.begin(), buckets_.end(), ExponentBucket{});
  pending_ = 0;
}

void Float32Table::scatter(BytesView bytes) {
  constexpr std::uint32_t kImplied = 1u << 23;
  Entry* entries = entries_.data();
  auto put = [entries](std::size_t table, std::uint32_t bits) {
    std::uint64_t magnitude = (bits & (kImplied - 1)) | kImplied;
    Entry& entry = entries[table * kStride + (bits >> 23)];
    entry.packed += magnitude + (std::uint64_t{1} << 40);
    entry.squares += magnitude * magnitude;
  };
  const std::size_t size = bytes.size() / 4, fours = size / kTables;
  for (std::size_t i = 0; i < fours; ++i) {
    for (std::size_t table = 0; table < kTables; ++table)
      put(table, bits_of<std::uint32_t>(bytes.data(), i * kTables + table));
  }
  for (std::size_t i = fours * kTables; i < size; ++i)
    put(0, bits_of<std::uint32_t>(bytes.data(), i));
}

// Moves entries into wide sums before they overflow.
void Float32Table::finalize() {
  constexpr std::uint64_t kSum = (std::uint64_t{1} << 40) - 1;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = entries_[i];
    if (entry.packed == 0) continue;
    ExponentBucket& bucket = buckets_[i % kStride];
    bucket.count += entry.packed >> 40;
    bucket.magnitudes += entry.packed & kSum;
    bucket.squares += entry.squares;
    entry = Entry{};
  }
  pending_ = 0;
}

void Float32Table::add(BytesView bytes, StatisticsSums& sums) {
  // Squares have 48 bits: an entry holds 2^16 of them.
  constexpr std::size_t kMost = std::size_t{1} << 16;
  std::uint64_t zeros = sums.zero;
  add_special_counts_and_range<std::uint32_t, 23>(bytes, range_of_float32(bytes), sums);
  std::size_t size = bytes.size() / 4;
  if (sums.zero - zeros == size) return;
  if (pending_ + size > kMost) finalize();
  scatter(bytes);
  pending_ += size;
}

void Float32Table::move_to(StatisticsSums& sums) {
  if (pending_ == 0) return;
  finalize();
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    add_bucket(sums, kFloat32Form, i, buckets_[i]);
    buckets_[i] = ExponentBucket{};
  }
}

void Float64Table::clear() {
  if (pending_ == 0) return;
  std::fill(entries_.begin(), entries_.end(), Entry{});
  pending_ = 0;
}

void Float64Table::scatter(BytesView bytes) {
  constexpr std::uint64_t kImplied = std::uint64_t{1} << 52;
  Entry* entries = entries_.data();
  auto put = [entries](std::size_t table, std::uint64_t bits) {
    std::uint64_t magnitude = (bits & (kImplied - 1)) | kImplied;
    Entry& entry = entries[table * kStride + (bits >> 52)];
    entry.packed += (Uint128{1} << 84) + magnitude;
    entry.squares += Uint128{magnitude} * magnitude;
  };
  const std::size_t size = bytes.size() / 8, twos = size / kTables;
  for (std::size_t i = 0; i < twos; ++i) {
    for (std::size_t table = 0; table < kTables; ++table)
      put(table, bits_of<std::uint64_t>(bytes.data(), i * kTables + table));
  }
  for (std::size_t i = twos * kTables; i < size; ++i)
    put(0, bits_of<std::uint64_t>(bytes.data(), i));
}

void Float64Table::add(BytesView bytes, StatisticsSums& sums) {
  constexpr std::size_t kMost = std::size_t{1} << 22;
  std::uint64_t zeros = sums.zero;
  add_special_counts_and_range<std::uint64_t, 52>(bytes, range_of_float64(bytes), sums);
  std::size_t size = bytes.size() / 8;
  if (sums.zero - zeros == size) return;
  if (pending_ + size > kMost) move_to(sums);
  scatter(bytes);
  pending_ += size;
}

void Float64Table::move_to(StatisticsSums& sums) {
  constexpr Uint128 kSum = (Uint128{1} << 84) - 1;
  if (pending_ == 0) return;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = entries_[i];
    if (entry.packed == 0) continue;
    add_bucket(
        sums, kFloat64Form, i % kStride,
        {static_cast<std::uint64_t>(entry.packed >> 84), entry.packed & kSum, entry.squares});
    entry = Entry{};
  }
  pending_ = 0;
}

namespace {

template <class Number>
void add_numbers(BytesView bytes, StatisticsSums& sums) {
  std::array<std::array<std::uint64_t, 65>, 2> widths{};
  std::array<Uint128, 2> magnitudes{};
  Uint128 squares = 0;
  std::uint64_t carried = 0;
  Number least = std::numeric_limits<Number>::max(), greatest = std::numeric_limits<Number>::min();
  const std::size_t size = bytes.size() / sizeof(Number);
  for (std::size_t i = 0; i < size; ++i) {
    auto number = bits_of<Number>(bytes.data(), i);
    least = std::min(least, number);
    greatest = std::max(greatest, number);
    bool negative = number < 0;
    auto magnitude = static_cast<std::uint64_t>(number);
    if (negative) magnitude = ~magnitude + 1;
    ++widths[negative][static_cast<std::size_t>(std::bit_width(magnitude))];
    magnitudes[negative] += magnitude;
    Uint128 square = Uint128{magnitude} * magnitude;
    squares += square;
    carried += squares < square ? 1 : 0;
  }
  sums.elements += size;
  sums.zero += widths[0][0];
  for (Number number : {least, greatest}) {
    auto key = order_key(sums.dtype, static_cast<std::make_unsigned_t<Number>>(number));
    sums.least = std::min(sums.least, key);
    sums.greatest = std::max(sums.greatest, key);
  }
  add(sums.squares, squares);
  add(sums.squares, carried, 128);
  for (std::size_t side = 0; side < 2; ++side) {
    add(sums.sums[side], magnitudes[side]);
    for (std::size_t width = 1; width < widths[side].size(); ++width) {
      auto& counts = sums.by_power[side];
      if (widths[side][width] == 0) continue;
      if (counts.size() < width) counts.resize(width);
      counts[width - 1] += widths[side][width];
    }
  }
}

}  // namespace

void add_integers(BytesView bytes, StatisticsSums& sums) {
  if (bytes.empty()) return;
  switch (sums.dtype) {
    case Dtype::kInt32:
      return add_numbers<std::int32_t>(bytes, sums);
    case Dtype::kUint32:
      return add_numbers<std::uint32_t>(bytes, sums);
    case Dtype::kInt64:
      return add_numbers<std::int64_t>(bytes, sums);
    default:
      return add_numbers<std::uint64_t>(bytes, sums);
  }
}

}  // namespace shw
