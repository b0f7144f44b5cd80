#include "core/tensor/statistics.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>

#include "core/tensor/number_form.h"
#include "core/tensor/statistics_counter.h"

using namespace shw;

namespace {

constexpr Dtype kAllDtypes[] = {
    Dtype::kFloat64,       Dtype::kFloat32,        Dtype::kFloat16,        Dtype::kBfloat16,
    Dtype::kFloat8E4m3fn,  Dtype::kFloat8E5m2,     Dtype::kFloat8E4m3fnuz, Dtype::kFloat8E5m2fnuz,
    Dtype::kFloat8E8m0fnu, Dtype::kFloat4E2m1fnX2, Dtype::kInt8,           Dtype::kInt16,
    Dtype::kInt32,         Dtype::kInt64,          Dtype::kUint8,          Dtype::kUint16,
    Dtype::kUint32,        Dtype::kUint64,         Dtype::kBool,           Dtype::kComplex32,
    Dtype::kComplex64,     Dtype::kComplex128,     Dtype::kBits8,          Dtype::kQint32};

template <class T>
Bytes bytes_of_numbers(const std::vector<T>& numbers) {
  Bytes bytes(numbers.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

StatisticsSums sums_of(Dtype dtype, BytesView bytes) {
  StatisticsCounter counter;
  counter.begin(dtype);
  counter.add(bytes);
  return counter.take();
}

template <class T>
Statistics told(Dtype dtype, const std::vector<T>& numbers) {
  return statistics_of(sums_of(dtype, bytes_of_numbers(numbers)));
}

// Sums element by element, in order.
StatisticsSums slow_sums(Dtype dtype, BytesView bytes) {
  StatisticsSums sums(dtype);
  std::size_t width = size_of(dtype);
  for (std::size_t at = 0; at + width <= bytes.size(); at += width) {
    if (width == 16) {
      std::uint64_t both[2];
      std::memcpy(both, bytes.data() + at, 16);
      ++sums.elements;
      if ((both[0] | both[1]) << 1 == 0) ++sums.zero;
      continue;
    }
    std::uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + at, width);
    add_elements(sums, bits, 1);
  }
  return sums;
}

// Bits of all kinds: most random, some with a minimal or maximal exponent, zeros, equal ones.
Bytes mixed_bytes(Dtype dtype, std::size_t elements, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::size_t width = size_of(dtype);
  Bytes bytes(elements * width);
  for (std::size_t i = 0; i < elements; ++i) {
    std::uint64_t words[2] = {random(), random()};
    auto form = float_form(dtype);
    std::uint64_t exponent =
        form ? ((std::uint64_t{1} << form->exponent_bits) - 1) << form->mantissa_bits : 0;
    switch (random() % 16) {
      case 0:
        words[0] |= exponent;
        break;
      case 1:
        words[0] &= ~exponent;
        break;
      case 2:
        words[0] = words[1] =
            random() % 2 == 0 ? 0 : std::uint64_t{1} << (width * 8 % 64 + 63) % 64;
        break;
      case 3:
        words[0] = exponent;
        break;
      default:
        break;
    }
    std::memcpy(bytes.data() + i * width, words, width);
  }
  return bytes;
}

// Compares statistics of three elements of this code with the C++ library's classification of its
// value.
template <NarrowFloat form>
bool is_told_right(Dtype dtype, std::uint32_t code) {
  double value = from_narrow<form, double>(code);
  StatisticsSums sums(dtype);
  add_elements(sums, code, 3);
  bool normal = form.specials == NarrowSpecials::kE8m0 || std::isnan(value) || value == 0 ||
                std::abs(value) >= std::ldexp(1, 1 - form.bias);
  if (sums.nan != (std::isnan(value) ? 3 : 0) || sums.infinite != (std::isinf(value) ? 3 : 0) ||
      sums.zero != (value == 0 ? 3 : 0) || sums.denormal != (normal ? 0 : 3))
    return false;
  Statistics statistics = statistics_of(sums);
  if (!std::isfinite(value)) return !statistics.mean && statistics.histogram.empty();
  if (*statistics.mean != value || *statistics.std != 0) return false;
  if (value == 0) return statistics.histogram.empty();
  return statistics.histogram ==
         std::vector<PowerBucket>{{value < 0 ? -1 : 1, std::ilogb(value), 3}};
}

template <NarrowFloat form>
void check_codes(Dtype dtype, std::uint32_t count) {
  CAPTURE(name(dtype));
  std::vector<std::uint32_t> wrong;
  for (std::uint32_t code = 0; code < count; ++code) {
    if (!is_told_right<form>(dtype, code)) wrong.push_back(code);
  }
  CHECK(wrong == std::vector<std::uint32_t>{});
}

}  // namespace

TEST_CASE("every code of the narrow floats is the number that it stands for") {
  check_codes<kFloat16Form>(Dtype::kFloat16, 0x10000);
  check_codes<kBfloat16Form>(Dtype::kBfloat16, 0x10000);
  check_codes<kE4m3fnForm>(Dtype::kFloat8E4m3fn, 256);
  check_codes<kE5m2Form>(Dtype::kFloat8E5m2, 256);
  check_codes<kE4m3fnuzForm>(Dtype::kFloat8E4m3fnuz, 256);
  check_codes<kE5m2fnuzForm>(Dtype::kFloat8E5m2fnuz, 256);
  check_codes<kE8m0Form>(Dtype::kFloat8E8m0fnu, 256);
}

TEST_CASE("tables come to what single elements come to, for every dtype and length") {
  for (Dtype dtype : kAllDtypes) {
    CAPTURE(name(dtype));
    for (std::size_t elements : {0, 1, 7, 600, 3'000, 70'001, 300'003}) {
      CAPTURE(elements);
      Bytes bytes = mixed_bytes(dtype, elements, elements + 1);
      CHECK(sums_of(dtype, bytes) == slow_sums(dtype, bytes));
    }
  }
}

TEST_CASE("parts, their order and who adds them change no bit of the sums") {
  std::mt19937 random(21);
  for (Dtype dtype : kAllDtypes) {
    CAPTURE(name(dtype));
    Bytes bytes = mixed_bytes(dtype, 90'000, 5);
    const StatisticsSums whole = sums_of(dtype, bytes);
    for (int round = 0; round < 4; ++round) {
      // Cut between elements, given to four counters, each of which gets its parts in pieces of any
      // size.
      std::vector<std::pair<std::size_t, std::size_t>> parts;
      for (std::size_t at = 0; at < bytes.size();) {
        std::size_t most = round == 0 ? 40'000 : 2'000;
        std::size_t length = std::min((random() % most + 1) * size_of(dtype), bytes.size() - at);
        parts.emplace_back(at, length);
        at += length;
      }
      std::shuffle(parts.begin(), parts.end(), random);
      std::vector<StatisticsSums> dealt(4);
      for (std::size_t worker = 0; worker < 4; ++worker) {
        StatisticsCounter counter;
        counter.begin(dtype);
        for (std::size_t i = worker; i < parts.size(); i += 4) {
          BytesView part = BytesView(bytes).subspan(parts[i].first, parts[i].second);
          std::size_t cut = random() % (part.size() + 1);
          counter.add(part.first(cut));
          counter.add(part.subspan(cut));
        }
        dealt[worker] = counter.take();
      }
      std::shuffle(dealt.begin(), dealt.end(), random);
      StatisticsSums sums(dtype);
      for (const StatisticsSums& part : dealt) sums += part;
      CHECK(sums == whole);
    }
  }
}

TEST_CASE("zeros as a length are zeros as bytes") {
  std::mt19937 random(22);
  for (Dtype dtype : kAllDtypes) {
    CAPTURE(name(dtype));
    std::size_t width = size_of(dtype), hole = 10'000 * width + 3, before = 4'999 * width + 5;
    Bytes bytes = mixed_bytes(dtype, 20'001, 6);
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(before), hole, std::byte{0});
    StatisticsCounter counter;
    counter.begin(dtype);
    counter.add(BytesView(bytes).first(before));
    counter.add_zeros(hole);
    counter.add(BytesView(bytes).subspan(before + hole));
    CHECK(counter.take() == slow_sums(dtype, bytes));
  }
}

TEST_CASE("a counter that was left in the middle begins from scratch") {
  StatisticsCounter counter;
  for (Dtype dtype : kAllDtypes) {
    CAPTURE(name(dtype));
    Bytes bytes = mixed_bytes(dtype, 100'000, 7);
    counter.begin(dtype);
    counter.add(bytes);
    counter.begin(dtype);
    counter.add(BytesView(bytes).first(40'000 * size_of(dtype)));
    CHECK(counter.take() == slow_sums(dtype, BytesView(bytes).first(40'000 * size_of(dtype))));
  }
}

TEST_CASE("mean and deviation are the doubles nearest to the true ones") {
  Statistics four = told(Dtype::kFloat32, std::vector<float>{1, 2, 3, 4});
  CHECK(*four.mean == 2.5);
  CHECK(*four.std == std::sqrt(1.25));
  // A running sum would lose everything here, or overflow.
  Statistics far = told(Dtype::kFloat64, std::vector<double>{1e300, 1.0, -1e300, 1.0});
  CHECK(*far.mean == 0.5);
  constexpr double kMost = std::numeric_limits<double>::max();
  Statistics most = told(Dtype::kFloat64, std::vector<double>{kMost, kMost, kMost});
  CHECK(*most.mean == kMost);
  CHECK(*most.std == 0);
  Statistics wide_apart = told(Dtype::kFloat64, std::vector<double>{kMost, -kMost});
  CHECK(*wide_apart.mean == 0);
  CHECK(*wide_apart.std == kMost);
  constexpr double kLeast = std::numeric_limits<double>::denorm_min();
  Statistics tiny = told(Dtype::kFloat64, std::vector<double>{kLeast, 2 * kLeast, 6 * kLeast});
  CHECK(*tiny.mean == 3 * kLeast);
  CHECK(*tiny.std == 2 * kLeast);  // the root of 14 / 3
  Statistics whole =
      told(Dtype::kInt64, std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::min(),
                                                    std::numeric_limits<std::int64_t>::max()});
  CHECK(*whole.mean == -0.5);
  CHECK(*whole.std == 0x1p63);
  Statistics flags = told(Dtype::kBool, std::vector<std::uint8_t>{0, 1, 1, 2});
  CHECK(*flags.mean == 0.75);
  CHECK(flags.least == "false");
  CHECK(flags.greatest == "true");
}

TEST_CASE("mean and deviation follow a sum in 128 bits") {
  std::mt19937_64 random(23);
  for (int round = 0; round < 300; ++round) {
    std::size_t count = random() % 500 + 1;
    std::vector<float> numbers(count);
    __extension__ __int128 sum = 0, squares = 0;
    for (float& number : numbers) {
      auto steps = static_cast<int>(random() % 2'000'001) - 1'000'000 + round * 1000;
      number = static_cast<float>(steps) / 1024;
      sum += steps;
      squares += static_cast<std::int64_t>(steps) * steps;
    }
    auto n = static_cast<std::int64_t>(count);
    Statistics statistics = told(Dtype::kFloat32, numbers);
    // long double has 64 bits, so it is rounded twice and may be off by half a unit in the last
    // place.
    long double mean = static_cast<long double>(sum) / static_cast<long double>(n) / 1024;
    long double spread = static_cast<long double>(n * squares - sum * sum);
    long double std = std::sqrt(spread) / static_cast<long double>(n) / 1024;
    CHECK(std::abs(static_cast<long double>(*statistics.mean) - mean) <=
          std::abs(mean) * 0x1.01p-53L);
    CHECK(std::abs(static_cast<long double>(*statistics.std) - std) <= std * 0x1.01p-53L);
  }
}

TEST_CASE("the least and the greatest pass NaN over and tell zeros apart") {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(),
                  kInfinity = std::numeric_limits<float>::infinity();
  Statistics zeros = told(Dtype::kFloat32, std::vector<float>{0.0f, kNan, -0.0f, -kNan});
  CHECK(zeros.least == "-0.0");
  CHECK(zeros.greatest == "0");
  CHECK(zeros.zero == 2);
  CHECK(zeros.nan == 2);
  Statistics ends = told(Dtype::kFloat32, std::vector<float>{1, -kInfinity, kNan, kInfinity});
  CHECK(ends.least == "-Infinity");
  CHECK(ends.greatest == "Infinity");
  CHECK(ends.infinite == 2);
  CHECK(*ends.mean == 1);
  Statistics none = told(Dtype::kFloat32, std::vector<float>(5000, kNan));
  CHECK(none.least.empty());
  CHECK(none.greatest.empty());
  CHECK_FALSE(none.mean);
  CHECK_FALSE(none.std);
  CHECK(none.histogram.empty());
  Statistics empty = told(Dtype::kFloat32, std::vector<float>{});
  CHECK(empty.elements == 0);
  CHECK(empty.least.empty());
  CHECK_FALSE(empty.mean);
  Statistics numbers = told(Dtype::kInt8, std::vector<std::int8_t>{5, -128, 127});
  CHECK(numbers.least == "-128");
  CHECK(numbers.greatest == "127");
  Statistics large = told(Dtype::kUint64, std::vector<std::uint64_t>{~std::uint64_t{0}, 3});
  CHECK(large.least == "3");
  CHECK(large.greatest == "18446744073709551615");
}

TEST_CASE("the histogram counts powers of two from the most negative to the most positive") {
  Statistics statistics =
      told(Dtype::kFloat32, std::vector<float>{0.0f, 1.0f, 1.5f, -3.0f, 0.25f, -0.25f, 1e-45f});
  CHECK(statistics.histogram ==
        std::vector<PowerBucket>{{-1, 1, 1}, {-1, -2, 1}, {1, -149, 1}, {1, -2, 1}, {1, 0, 2}});
  std::mt19937_64 random(24);
  for (Dtype dtype : {Dtype::kFloat64, Dtype::kFloat32}) {
    Bytes bytes = mixed_bytes(dtype, 50'000, random());
    std::map<std::pair<int, int>, std::uint64_t> expected;
    for (std::size_t i = 0; i < 50'000; ++i) {
      double value = 0;
      if (dtype == Dtype::kFloat64) {
        std::memcpy(&value, bytes.data() + i * 8, 8);
      } else {
        float narrow = 0;
        std::memcpy(&narrow, bytes.data() + i * 4, 4);
        value = static_cast<double>(narrow);
      }
      if (std::isfinite(value) && value != 0)
        ++expected[{std::signbit(value) ? -1 : 1, std::ilogb(value)}];
    }
    Statistics all = statistics_of(sums_of(dtype, bytes));
    CHECK(all.histogram.size() == expected.size());
    for (const PowerBucket& bucket : all.histogram)
      CHECK(expected[{bucket.sign, bucket.exponent}] == bucket.count);
  }
}

TEST_CASE("of complex, packed and opaque elements only zeros are reported") {
  Statistics pairs = told(Dtype::kComplex64, std::vector<float>{0, -0.0f, 0, 1, -0.0f, 0});
  CHECK(pairs.kind == NumberKind::kOpaque);
  CHECK(pairs.elements == 3);
  CHECK(pairs.zero == 2);
  CHECK(pairs.least.empty());
  CHECK_FALSE(pairs.mean);
  Statistics wide_pairs = told(Dtype::kComplex128, std::vector<double>{0, -0.0, 0, 1});
  CHECK(wide_pairs.elements == 2);
  CHECK(wide_pairs.zero == 1);
  Statistics packed =
      told(Dtype::kFloat4E2m1fnX2, std::vector<std::uint8_t>{0x00, 0x80, 0x88, 0x10});
  CHECK(packed.zero == 3);
}
