#include "core/tensor/element_difference.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "core/base/bytes.h"
#include "core/tensor/number_form.h"
#include "core/tensor/statistics.h"

using namespace shw;

namespace {

std::uint64_t loose_bits(const Bytes& bytes, std::size_t i, std::size_t width) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, bytes.data() + i * width, width);
  return bits;
}

double slow_number(Dtype dtype, std::uint64_t bits) {
  NumberParts parts = parts_of(*float_form(dtype), bits);
  if (parts.is_nan) return std::numeric_limits<double>::quiet_NaN();
  double value = parts.is_infinite ? std::numeric_limits<double>::infinity()
                                   : std::ldexp(static_cast<double>(parts.magnitude),
                                                parts.power + unit_exponent(*float_form(dtype)));
  return parts.negative ? -value : value;
}

// Counts from one number to the next in order, as ulps_between() does.
std::uint64_t slow_steps(Dtype dtype, std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = order_key(dtype, a), y = order_key(dtype, b);
  std::uint64_t steps = x < y ? y - x : x - y;
  bool through_zero = std::signbit(slow_number(dtype, a)) != std::signbit(slow_number(dtype, b));
  return through_zero && steps != 0 ? steps - 1 : steps;  // -0.0 and 0.0 are two keys
}

ElementDifference slow_difference(Dtype dtype, const Bytes& a, const Bytes& b) {
  ElementDifference out;
  std::size_t width = size_of(dtype);
  for (std::size_t i = 0; i < a.size() / width; ++i) {
    std::uint64_t x = loose_bits(a, i, width), y = loose_bits(b, i, width);
    if (x == y) continue;
    if (!out.first) out.first = i;
    ++out.differing;
    double u = slow_number(dtype, x), v = slow_number(dtype, y);
    if (std::isnan(u) && std::isnan(v)) ++out.bits_only;
    if (std::isnan(u) != std::isnan(v)) ++out.nan;
    if (std::isnan(u) || std::isnan(v)) continue;
    if (u == v) ++out.bits_only;
    out.max_abs = std::max(out.max_abs, std::abs(u - v));
    out.max_ulp = std::max(out.max_ulp, slow_steps(dtype, x, y));
  }
  return out;
}

template <class T>
Bytes bytes_of_all(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <class T>
ElementDifference differ(Dtype dtype, const std::vector<T>& a, const std::vector<T>& b) {
  return difference_of(dtype, bytes_of_all(a).data(), bytes_of_all(b).data(), a.size());
}

}  // namespace

TEST_CASE("the difference of random floats of every form is that of a loop over their parts") {
  std::mt19937_64 random(11);
  for (Dtype dtype : {Dtype::kFloat64, Dtype::kFloat32, Dtype::kFloat16, Dtype::kBfloat16,
                      Dtype::kFloat8E4m3fn, Dtype::kFloat8E5m2, Dtype::kFloat8E4m3fnuz,
                      Dtype::kFloat8E5m2fnuz, Dtype::kFloat8E8m0fnu}) {
    CAPTURE(name(dtype));
    std::size_t width = size_of(dtype), count = 1500;
    Bytes a(count * width);
    for (std::byte& byte : a) byte = static_cast<std::byte>(random());
    Bytes b = a;
    for (int changes = 0; changes < 400; ++changes)
      b[random() % b.size()] = static_cast<std::byte>(random());
    ElementDifference fast = difference_of(dtype, a.data(), b.data(), count);
    ElementDifference slow = slow_difference(dtype, a, b);
    CHECK(fast.differing == slow.differing);
    CHECK(fast.bits_only == slow.bits_only);
    CHECK(fast.nan == slow.nan);
    CHECK(fast.max_abs == slow.max_abs);
    CHECK(fast.max_ulp == slow.max_ulp);
    CHECK(fast.first == slow.first);
    CHECK(difference_of(dtype, a.data(), a.data(), count).differing == 0);
  }
}

TEST_CASE(
    "NaN equals itself bit by bit and differs from a number, and zeros differ by their sign") {
  float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  auto equal = differ<float>(Dtype::kFloat32, {nan, 1}, {nan, 1});
  CHECK(equal.differing == 0);
  auto one = differ<float>(Dtype::kFloat32, {1, nan, 2}, {1, 5, 2});
  CHECK(one.differing == 1);
  CHECK(one.nan == 1);
  CHECK(one.max_abs == 0);
  CHECK(one.first == 1);
  auto zeros = differ<float>(Dtype::kFloat32, {0.0f}, {-0.0f});
  CHECK(zeros.differing == 1);
  CHECK(zeros.bits_only == 1);
  CHECK(zeros.max_ulp == 0);
  auto others = differ<float>(Dtype::kFloat32, {nan}, {-nan});
  CHECK(others.bits_only == 1);
  CHECK(others.nan == 0);
  auto infinite =
      differ<float>(Dtype::kFloat32, {inf, inf}, {std::numeric_limits<float>::max(), inf});
  CHECK(infinite.differing == 1);
  CHECK(infinite.max_abs == std::numeric_limits<double>::infinity());
  CHECK(infinite.max_ulp == 1);
}

TEST_CASE("whole numbers differ by what is between them, however far that is") {
  using Long = std::int64_t;
  constexpr Long kLow = std::numeric_limits<Long>::min(), kHigh = std::numeric_limits<Long>::max();
  auto far = differ<Long>(Dtype::kInt64, {kLow, 3}, {kHigh, 3});
  CHECK(far.max_whole == std::numeric_limits<std::uint64_t>::max());
  CHECK(far.first == 0);
  // Two neighbours that are equal as double.
  auto near = differ<Long>(Dtype::kInt64, {kHigh}, {kHigh - 1});
  CHECK(near.max_whole == 1);
  CHECK(near.bits_only == 0);
  CHECK(differ<std::int8_t>(Dtype::kInt8, {-128}, {127}).max_whole == 255);
  CHECK(differ<std::uint8_t>(Dtype::kUint8, {0}, {255}).max_whole == 255);
  auto both_true = differ<std::uint8_t>(Dtype::kBool, {1, 0}, {2, 1});
  CHECK(both_true.differing == 2);
  CHECK(both_true.bits_only == 1);
  CHECK(both_true.max_abs == 1);
  auto opaque = differ<std::uint64_t>(Dtype::kComplex64, {1, 2, 3}, {1, 5, 6});
  CHECK(opaque.differing == 2);
  CHECK(opaque.first == 1);
}

TEST_CASE("elements of two dtypes differ by value") {
  std::vector<float> a{1, 2.5f, std::numeric_limits<float>::quiet_NaN(), 1.00001f};
  std::vector<std::uint16_t> b{0x3F80, 0x4020, 0x7FC0, 0x3F80};  // bfloat16: 1, 2.5, NaN, 1
  REQUIRE(can_compare(Dtype::kFloat32, Dtype::kBfloat16));
  CHECK_FALSE(can_compare(Dtype::kFloat32, Dtype::kInt64));
  CHECK_FALSE(can_compare(Dtype::kComplex64, Dtype::kFloat32));
  auto seen = difference_of(Dtype::kFloat32, bytes_of_all(a).data(), Dtype::kBfloat16,
                            bytes_of_all(b).data(), 4);
  CHECK(seen.differing == 1);
  CHECK(seen.first == 3);
  CHECK(seen.max_abs == doctest::Approx(1e-5).epsilon(0.01));
}

TEST_CASE("the cosine is of the finite elements and of nothing where one side is all zeros") {
  std::vector<float> a{3, 4, std::numeric_limits<float>::infinity()}, b{4, 3, 1}, none{0, 0, 0};
  auto cosine = [](const std::vector<float>& x, const std::vector<float>& y) {
    return products_of(Dtype::kFloat32, bytes_of_all(x).data(), Dtype::kFloat32,
                       bytes_of_all(y).data(), x.size())
        .cosine();
  };
  CHECK(*cosine(a, b) == doctest::Approx(0.96));
  CHECK(*cosine(a, a) == doctest::Approx(1));
  CHECK_FALSE(cosine(a, none).has_value());
  std::vector<float> long_a(1300), long_b(1300);
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < long_a.size(); ++i) {
    long_a[i] = static_cast<float>(i % 17) - 5;
    long_b[i] = static_cast<float>(i % 13) - 4;
    ab += double{long_a[i]} * long_b[i];
    aa += double{long_a[i]} * long_a[i];
    bb += double{long_b[i]} * long_b[i];
  }
  CHECK(*cosine(long_a, long_b) == doctest::Approx(ab / std::sqrt(aa * bb)));
}
