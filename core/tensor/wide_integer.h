// Whole numbers without a sign and without an end: what exact sums of floats are kept in. A sum of
// squares of float64 takes 4,300 bits; most take ten words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shw {

__extension__ using Uint128 = unsigned __int128;

// Least word first; the last word is not 0, so that equal numbers are equal vectors.
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
// a -= b, where b is not the larger one.
void subtract(WideInteger& a, const WideInteger& b);
WideInteger product(const WideInteger& a, const WideInteger& b);

// Rounded down; `inexact` becomes true where something was cut off, and stays as it is otherwise.
WideInteger quotient(const WideInteger& a, std::uint64_t divisor, bool& inexact);
WideInteger square_root(const WideInteger& a, bool& inexact);
// Of negative bits downwards.
WideInteger shifted(const WideInteger& a, int bits, bool& inexact);

// (number + a part below one, if there is one) * 2^exponent as the nearest double, ties to even.
// With such a part the number has at least 55 bits. The result is finite.
double nearest_double(const WideInteger& number, bool inexact, int exponent);

}  // namespace shw
