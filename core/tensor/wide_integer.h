// Unsigned integers of unlimited width, for exact sums of floats. A sum of float64 squares needs
// 4,300 bits; most sums need ten words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shw {

__extension__ using Uint128 = unsigned __int128;

// Least significant word first; the last word is not 0, so equal numbers are equal vectors.
struct WideInteger {
  std::vector<std::uint64_t> words;
  bool is_zero() const { return words.empty(); }
  friend bool operator==(const WideInteger&, const WideInteger&) = default;
};

WideInteger wide(Uint128 value);
int bit_length(const WideInteger& number);  // 0 for 0
bool is_less(const WideInteger& a, const WideInteger& b);

// a += value * 2^bits
void add(WideInteger& a, Uint128 value, int bits = 0);
void add(WideInteger& a, const WideInteger& b);
// a -= b; requires b <= a.
void subtract(WideInteger& a, const WideInteger& b);
WideInteger product(const WideInteger& a, const WideInteger& b);

// Quotient rounded down; sets `inexact` if there is a remainder, else leaves it unchanged.
WideInteger quotient(const WideInteger& a, std::uint64_t divisor, bool& inexact);
WideInteger square_root(const WideInteger& a, bool& inexact);
// Shifts left, or right for negative `bits`.
WideInteger shifted(const WideInteger& a, int bits, bool& inexact);

// (number + a fraction below one if `inexact`) * 2^exponent as the nearest double, ties to even.
// With a fraction the number must have at least 55 bits. The result is finite.
double nearest_double(const WideInteger& number, bool inexact, int exponent);

}  // namespace shw
