#include "core/tensor/wide_integer.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>

using namespace shw;

namespace {

// A random number of this many bits.
Uint128 random_wide(std::mt19937_64& random, int bits) {
  Uint128 number = (Uint128{random()} << 64) | random();
  auto length = static_cast<int>(random() % static_cast<std::uint64_t>(bits + 1));
  return length == 0 ? 0 : number >> (128 - length);
}

}  // namespace

TEST_CASE("wide integers add, multiply, divide and take roots as 128 bits do") {
  std::mt19937_64 random(11);
  for (int round = 0; round < 20'000; ++round) {
    Uint128 a = random_wide(random, 127), b = random_wide(random, 127);
    WideInteger sum = wide(a);
    add(sum, wide(b));
    CHECK(sum == wide(a + b));
    CHECK(is_less(wide(a), wide(b)) == (a < b));
    WideInteger difference = wide(std::max(a, b));
    subtract(difference, wide(std::min(a, b)));
    CHECK(difference == wide(std::max(a, b) - std::min(a, b)));
    Uint128 c = random_wide(random, 64), d = random_wide(random, 64);
    CHECK(product(wide(c), wide(d)) == wide(c * d));
    auto divisor = static_cast<std::uint64_t>(d) | 1;
    bool inexact = false;
    CHECK(quotient(wide(a), divisor, inexact) == wide(a / divisor));
    CHECK(inexact == (a % divisor != 0));
    inexact = false;
    WideInteger root = square_root(wide(a), inexact);
    CHECK_FALSE(is_less(wide(a), product(root, root)));
    CHECK(inexact == !(product(root, root) == wide(a)));
    add(root, 1);
    CHECK(is_less(wide(a), product(root, root)));
  }
}

TEST_CASE("a wide integer shifts over words and says what it lost") {
  std::mt19937_64 random(12);
  for (int round = 0; round < 5'000; ++round) {
    Uint128 a = random_wide(random, 128);
    auto bits = static_cast<int>(random() % 300);
    bool lost = false;
    WideInteger up = shifted(wide(a), bits, lost);
    CHECK_FALSE(lost);
    CHECK(bit_length(up) == (a == 0 ? 0 : bit_length(wide(a)) + bits));
    CHECK(shifted(up, -bits, lost) == wide(a));
    CHECK_FALSE(lost);
    auto down = static_cast<int>(random() % 128);
    CHECK(shifted(wide(a), -down, lost) == wide(a >> down));
    CHECK(lost == ((a >> down) << down != a));
    WideInteger added;
    add(added, a, bits);
    CHECK(added == up);
  }
}

TEST_CASE("a wide integer becomes the nearest double, ties to even") {
  std::mt19937_64 random(13);
  for (int round = 0; round < 20'000; ++round) {
    Uint128 a = random_wide(random, 128);
    // Half of the numbers are next to a tie.
    if (round % 2 == 0 && a >> 70 != 0) a = (a >> 60 << 60) + (Uint128{1} << 59) + round % 3 - 1;
    CHECK(nearest_double(wide(a), false, 0) == static_cast<double>(a));
    CHECK(nearest_double(wide(a), false, -200) == std::ldexp(static_cast<double>(a), -200));
  }
  Uint128 tie = (Uint128{1} << 60) + (Uint128{1} << 7);
  CHECK(nearest_double(wide(tie), false, 0) == 0x1p60);
  CHECK(nearest_double(wide(tie), true, 0) == 0x1p60 + 256);
}

TEST_CASE("below the normal doubles a wide integer is rounded where they end") {
  constexpr double kLeast = std::numeric_limits<double>::denorm_min();
  CHECK(nearest_double(wide(1), false, -1074) == kLeast);
  CHECK(nearest_double(wide(1), false, -1075) == 0);
  CHECK(nearest_double(wide(3), false, -1075) == 2 * kLeast);
  CHECK(nearest_double(wide((Uint128{1} << 100) + 1), false, -1175) == kLeast);
  CHECK(nearest_double(wide(Uint128{1} << 100), false, -1175) == 0);
  CHECK(nearest_double(wide(Uint128{1} << 100), true, -1175) == kLeast);
  CHECK(nearest_double(wide(5), false, -1076) == kLeast);
  CHECK(nearest_double(wide(1), false, -5000) == 0);
}
