#include "core/tensor/statistics.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <tuple>

#include "core/base/bytes.h"
#include "core/tensor/element_text.h"
#include "core/tensor/number_form.h"

namespace shw {
namespace {

bool is_signed(Dtype dtype) {
  return dtype == Dtype::kInt8 || dtype == Dtype::kInt16 || dtype == Dtype::kInt32 ||
         dtype == Dtype::kInt64;
}

std::uint64_t sign_bit(Dtype dtype) {
  return std::uint64_t{1} << (size_of(dtype) * 8 - 1);
}

// Inverse of order_key().
std::uint64_t bits_of_order_key(Dtype dtype, std::uint64_t key) {
  if (auto form = float_form(dtype)) {
    if (form->specials == NarrowSpecials::kE8m0) return key;
    std::uint64_t sign = sign_bit(dtype);
    return (key & sign) != 0 ? key ^ sign : ~key & (sign | (sign - 1));
  }
  return is_signed(dtype) ? key ^ sign_bit(dtype) : key;
}

std::string order_key_text(Dtype dtype, std::uint64_t key) {
  std::uint64_t bits = bits_of_order_key(dtype, key);
  std::array<std::byte, 8> bytes{};
  std::memcpy(bytes.data(), &bits, sizeof bits);
  return element_text(dtype, BytesView(bytes).first(size_of(dtype)), 0);
}

// Both halves of a complex number or packed pair may be -0.
bool is_opaque_zero(Dtype dtype, std::uint64_t bits) {
  switch (dtype) {
    case Dtype::kComplex32:
    case Dtype::kBcomplex32:
      return (bits & 0x7FFF7FFF) == 0;
    case Dtype::kComplex64:
      return (bits & 0x7FFFFFFF7FFFFFFF) == 0;
    case Dtype::kFloat4E2m1fnX2:
      return (bits & 0x77) == 0;
    default:
      return bits == 0;
  }
}

void update_min_max(StatisticsSums& sums, std::uint64_t key) {
  sums.least = std::min(sums.least, key);
  sums.greatest = std::max(sums.greatest, key);
}

// `power`: the power of two by which the magnitude is scaled, in units.
void add_magnitude(StatisticsSums& sums, bool negative, std::uint64_t magnitude, int power,
                   std::uint64_t count) {
  auto side = static_cast<std::size_t>(negative);
  auto at = static_cast<std::size_t>(power + static_cast<int>(std::bit_width(magnitude)) - 1);
  if (sums.by_power[side].size() <= at) sums.by_power[side].resize(at + 1);
  sums.by_power[side][at] += count;
  add(sums.sums[side], Uint128{magnitude} * count, power);
  Uint128 square = Uint128{magnitude} * magnitude;
  add(sums.squares, Uint128{static_cast<std::uint64_t>(square)} * count, 2 * power);
  add(sums.squares, (square >> 64) * count, 2 * power + 64);
}

void add_float(StatisticsSums& sums, const NarrowFloat& form, std::uint64_t bits,
               std::uint64_t count) {
  NumberParts parts = parts_of(form, bits);
  if (parts.is_nan) {
    sums.nan += count;
    return;
  }
  update_min_max(sums, order_key(sums.dtype, bits));
  if (parts.is_infinite) {
    sums.infinite += count;
  } else if (parts.magnitude == 0) {
    sums.zero += count;
  } else {
    sums.denormal += parts.is_denormal ? count : 0;
    add_magnitude(sums, parts.negative, parts.magnitude, parts.power, count);
  }
}

void add_integer(StatisticsSums& sums, std::uint64_t bits, std::uint64_t count) {
  if (sums.dtype == Dtype::kBool) bits = bits != 0 ? 1 : 0;
  update_min_max(sums, order_key(sums.dtype, bits));
  bool negative = is_signed(sums.dtype) && (bits & sign_bit(sums.dtype)) != 0;
  std::uint64_t sign = sign_bit(sums.dtype);
  std::uint64_t magnitude = negative ? (~bits + 1) & (sign | (sign - 1)) : bits;
  if (magnitude == 0)
    sums.zero += count;
  else
    add_magnitude(sums, negative, magnitude, 0, count);
}

// Computes |sum| / count.
double mean_of(const StatisticsSums& sums, std::uint64_t count, int unit) {
  // 128 extra bits, so that the quotient has at least 64.
  constexpr int kMore = 128;
  bool negative = is_less(sums.sums[0], sums.sums[1]), inexact = false;
  WideInteger sum = sums.sums[negative ? 1 : 0];
  subtract(sum, sums.sums[negative ? 0 : 1]);
  WideInteger mean = quotient(shifted(sum, kMore, inexact), count, inexact);
  double magnitude = nearest_double(mean, inexact, unit - kMore);
  return negative ? -magnitude : magnitude;
}

// Computes sqrt(count * squares - sum * sum) / count.
double deviation_of(const StatisticsSums& sums, std::uint64_t count, int unit) {
  bool inexact = false;
  bool negative = is_less(sums.sums[0], sums.sums[1]);
  WideInteger sum = sums.sums[negative ? 1 : 0];
  subtract(sum, sums.sums[negative ? 0 : 1]);
  WideInteger spread = product(sums.squares, wide(count));
  subtract(spread, product(sum, sum));
  if (spread.is_zero()) return 0;
  // The root has 129 or 130 bits; after the division at least 65 remain.
  constexpr int kBits = 260;
  int missing = kBits - bit_length(spread);
  int half = missing >= 0 ? missing / 2 : -((1 - missing) / 2);
  WideInteger root = square_root(shifted(spread, 2 * half, inexact), inexact);
  return nearest_double(quotient(root, count, inexact), inexact, unit - half);
}

std::vector<PowerBucket> histogram_of(const StatisticsSums& sums, int unit) {
  std::vector<PowerBucket> buckets;
  for (int sign : {-1, 1}) {
    const auto& counts = sums.by_power[sign < 0 ? 1 : 0];
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] != 0) buckets.push_back({sign, static_cast<int>(i) + unit, counts[i]});
    }
    if (sign < 0) std::reverse(buckets.begin(), buckets.end());
  }
  return buckets;
}

}  // namespace

NumberKind number_kind(Dtype dtype) {
  if (float_form(dtype)) return NumberKind::kFloat;
  switch (dtype) {
    case Dtype::kInt8:
    case Dtype::kInt16:
    case Dtype::kInt32:
    case Dtype::kInt64:
    case Dtype::kUint8:
    case Dtype::kUint16:
    case Dtype::kUint32:
    case Dtype::kUint64:
    case Dtype::kBool:
      return NumberKind::kInteger;
    default:
      return NumberKind::kOpaque;
  }
}

StatisticsSums& StatisticsSums::operator+=(const StatisticsSums& other) {
  elements += other.elements;
  nan += other.nan;
  infinite += other.infinite;
  denormal += other.denormal;
  zero += other.zero;
  least = std::min(least, other.least);
  greatest = std::max(greatest, other.greatest);
  add(squares, other.squares);
  for (std::size_t side = 0; side < 2; ++side) {
    add(sums[side], other.sums[side]);
    auto& counts = by_power[side];
    const auto& more = other.by_power[side];
    if (counts.size() < more.size()) counts.resize(more.size());
    for (std::size_t i = 0; i < more.size(); ++i) counts[i] += more[i];
  }
  return *this;
}

std::uint64_t order_key(Dtype dtype, std::uint64_t bits) {
  if (auto form = float_form(dtype)) {
    if (form->specials == NarrowSpecials::kE8m0) return bits;
    std::uint64_t sign = sign_bit(dtype);
    return (bits & sign) != 0 ? ~bits & (sign | (sign - 1)) : bits | sign;
  }
  return is_signed(dtype) ? bits ^ sign_bit(dtype) : bits;
}

void add_elements(StatisticsSums& sums, std::uint64_t bits, std::uint64_t count) {
  sums.elements += count;
  if (auto form = float_form(sums.dtype)) return add_float(sums, *form, bits, count);
  if (number_kind(sums.dtype) == NumberKind::kInteger) return add_integer(sums, bits, count);
  if (is_opaque_zero(sums.dtype, bits)) sums.zero += count;
}

std::pair<std::string, std::string> range_text(const StatisticsSums& sums) {
  return {order_key_text(sums.dtype, sums.least), order_key_text(sums.dtype, sums.greatest)};
}

Statistics statistics_of(const StatisticsSums& sums) {
  Statistics out;
  out.kind = number_kind(sums.dtype);
  out.elements = sums.elements;
  out.zero = sums.zero;
  if (out.kind == NumberKind::kOpaque) return out;
  out.nan = sums.nan;
  out.infinite = sums.infinite;
  out.denormal = sums.denormal;
  if (sums.elements != sums.nan) {
    std::tie(out.least, out.greatest) = range_text(sums);
  }
  auto form = float_form(sums.dtype);
  int unit = form ? unit_exponent(*form) : 0;
  std::uint64_t finite = sums.elements - sums.nan - sums.infinite;
  if (finite != 0) {
    out.mean = mean_of(sums, finite, unit);
    out.std = deviation_of(sums, finite, unit);
  }
  out.histogram = histogram_of(sums, unit);
  return out;
}

}  // namespace shw
