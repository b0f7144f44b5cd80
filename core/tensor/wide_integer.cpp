#include "core/tensor/wide_integer.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

namespace shw {
namespace {

constexpr int kWordBits = 64;

void trim(WideInteger& a) {
  while (!a.words.empty() && a.words.back() == 0) a.words.pop_back();
}

void add_word(WideInteger& a, std::uint64_t word, std::size_t at) {
  if (word == 0) return;
  if (a.words.size() <= at) a.words.resize(at + 1);
  while (__builtin_add_overflow(a.words[at], word, &a.words[at])) {
    word = 1;
    if (++at == a.words.size()) a.words.push_back(0);
  }
}

}  // namespace

WideInteger wide(Uint128 value) {
  WideInteger out;
  add(out, value);
  return out;
}

int bit_length(const WideInteger& number) {
  if (number.is_zero()) return 0;
  return static_cast<int>(number.words.size()) * kWordBits - std::countl_zero(number.words.back());
}

bool is_less(const WideInteger& a, const WideInteger& b) {
  if (a.words.size() != b.words.size()) return a.words.size() < b.words.size();
  return std::lexicographical_compare(a.words.rbegin(), a.words.rend(), b.words.rbegin(),
                                      b.words.rend());
}

void add(WideInteger& a, Uint128 value, int bits) {
  auto at = static_cast<std::size_t>(bits / kWordBits);
  int shift = bits % kWordBits;
  add_word(a, static_cast<std::uint64_t>(value << shift), at);
  add_word(a, static_cast<std::uint64_t>((value << shift) >> kWordBits), at + 1);
  if (shift != 0) add_word(a, static_cast<std::uint64_t>(value >> (2 * kWordBits - shift)), at + 2);
}

void add(WideInteger& a, const WideInteger& b) {
  for (std::size_t i = 0; i < b.words.size(); ++i) add_word(a, b.words[i], i);
}

void subtract(WideInteger& a, const WideInteger& b) {
  assert(!is_less(a, b));
  bool borrow = false;
  for (std::size_t i = 0; i < a.words.size(); ++i) {
    std::uint64_t taken = i < b.words.size() ? b.words[i] : 0;
    bool first = __builtin_sub_overflow(a.words[i], taken, &a.words[i]);
    bool second = __builtin_sub_overflow(a.words[i], std::uint64_t{borrow}, &a.words[i]);
    borrow = first || second;
  }
  trim(a);
}

WideInteger product(const WideInteger& a, const WideInteger& b) {
  WideInteger out;
  out.words.assign(a.words.size() + b.words.size(), 0);
  for (std::size_t i = 0; i < a.words.size(); ++i) {
    std::uint64_t carry = 0;
    for (std::size_t j = 0; j < b.words.size(); ++j) {
      // The sum is at most (2^64 - 1)^2 + 2 (2^64 - 1), which fits in 128 bits.
      Uint128 sum = Uint128{a.words[i]} * b.words[j] + out.words[i + j] + carry;
      out.words[i + j] = static_cast<std::uint64_t>(sum);
      carry = static_cast<std::uint64_t>(sum >> kWordBits);
    }
    out.words[i + b.words.size()] = carry;
  }
  trim(out);
  return out;
}

WideInteger quotient(const WideInteger& a, std::uint64_t divisor, bool& inexact) {
  WideInteger out = a;
  Uint128 rest = 0;
  for (std::size_t i = out.words.size(); i-- > 0;) {
    rest = (rest << kWordBits) | out.words[i];
    out.words[i] = static_cast<std::uint64_t>(rest / divisor);
    rest %= divisor;
  }
  inexact = inexact || rest != 0;
  trim(out);
  return out;
}

WideInteger square_root(const WideInteger& a, bool& inexact) {
  WideInteger root;
  for (int bit = (bit_length(a) + 1) / 2; bit-- > 0;) {
    WideInteger larger = root;
    add(larger, 1, bit);
    if (!is_less(a, product(larger, larger))) root = std::move(larger);
  }
  inexact = inexact || !(product(root, root) == a);
  return root;
}

WideInteger shifted(const WideInteger& a, int bits, bool& inexact) {
  WideInteger out;
  if (bits >= 0) {
    for (std::size_t i = 0; i < a.words.size(); ++i)
      add(out, a.words[i], bits + static_cast<int>(i) * kWordBits);
    return out;
  }
  auto gone = static_cast<std::size_t>(-bits / kWordBits);
  int shift = -bits % kWordBits;
  for (std::size_t i = 0; i < std::min(gone, a.words.size()); ++i)
    inexact = inexact || a.words[i] != 0;
  if (gone >= a.words.size()) return out;
  inexact = inexact || (a.words[gone] & ((std::uint64_t{1} << shift) - 1)) != 0;
  out.words.assign(a.words.begin() + static_cast<std::ptrdiff_t>(gone), a.words.end());
  for (std::size_t i = 0; i < out.words.size() && shift != 0; ++i) {
    std::uint64_t above = i + 1 < out.words.size() ? out.words[i + 1] : 0;
    out.words[i] = (out.words[i] >> shift) | (above << (kWordBits - shift));
  }
  trim(out);
  return out;
}

double nearest_double(const WideInteger& number, bool inexact, int exponent) {
  constexpr int kMantissa = 53, kLowest = -1074;
  if (number.is_zero()) return 0;
  int lowest_bit = std::max(exponent + bit_length(number) - kMantissa, kLowest);
  int drop = lowest_bit - exponent;
  if (drop <= 0) return std::ldexp(static_cast<double>(number.words.front()), exponent);
  // Keeps one extra bit for rounding.
  WideInteger kept = shifted(number, 1 - drop, inexact);
  std::uint64_t bits = kept.is_zero() ? 0 : kept.words.front();
  bool up = (bits & 1) != 0 && (inexact || (bits & 2) != 0);
  return std::ldexp(static_cast<double>((bits >> 1) + (up ? 1 : 0)), lowest_bit);
}

}  // namespace shw
