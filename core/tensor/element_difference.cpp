#include "core/tensor/element_difference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "core/tensor/cpu_clones.h"
#include "core/tensor/element_numbers.h"
#include "core/tensor/number_form.h"
#include "core/tensor/statistics.h"

namespace shw {
namespace {

// Elements per block: as doubles they fit in the first-level cache.
constexpr std::size_t kTogether = 512;
// Elements per vector step.
constexpr std::size_t kLanes = 8;

struct Numbers {
  std::array<double, kTogether> a, b;
};

// Codes of floats are ordered by magnitude; the sign bit comes first.
std::uint64_t steps(std::uint64_t a, std::uint64_t b, std::uint64_t sign) {
  std::uint64_t x = a & ~sign, y = b & ~sign;
  // Different signs: the distance is the sum of the distances to zero. Both are below 2^63.
  if ((a & sign) != (b & sign)) return x + y;
  return x < y ? y - x : x - y;
}

std::uint64_t sign_of_codes(Dtype dtype) {
  if (dtype == Dtype::kFloat8E8m0fnu) return 0;
  return std::uint64_t{1} << (8 * size_of(dtype) - 1);
}

// Fills the unused end of the block with zeros.
void zero_unused_end(Numbers& numbers, std::size_t count) {
  std::fill(numbers.a.begin() + static_cast<std::ptrdiff_t>(count), numbers.a.end(), 0);
  std::fill(numbers.b.begin() + static_cast<std::ptrdiff_t>(count), numbers.b.end(), 0);
}

std::size_t first_differing_element(const std::byte* a, const std::byte* b, std::size_t width,
                                    std::size_t count) {
  std::size_t bytes = count * width;
  return static_cast<std::size_t>(std::mismatch(a, a + bytes, b).first - a) / width;
}

// Handles blocks with a NaN or an infinity element by element.
template <class Bits>
void add_non_finite(std::uint64_t sign, const std::byte* a, const std::byte* b,
                    const Numbers& numbers, std::size_t count, ElementDifference& out) {
  for (std::size_t i = 0; i < count; ++i) {
    Bits x = code_at<Bits>(a, i), y = code_at<Bits>(b, i);
    if (x == y) continue;
    ++out.differing;
    double u = numbers.a[i], v = numbers.b[i];
    if (std::isnan(u) || std::isnan(v)) {
      ++(std::isnan(u) && std::isnan(v) ? out.bits_only : out.nan);
      continue;
    }
    if (u == v) ++out.bits_only;
    out.max_abs = std::max(out.max_abs, std::abs(u - v));
    out.max_ulp = std::max(out.max_ulp, steps(x, y, sign));
  }
}

// Result of a branch-free pass over finite elements.
template <class Step>
struct PlainFloats {
  Step differing = 0, bits_only = 0, max_steps = 0;
};

// Codes are compared as integers, because zero is the only value with two codes.
template <class Bits, class Step>
[[gnu::always_inline]] inline PlainFloats<Step> compare_plain(Step sign, const std::byte* a,
                                                              const std::byte* b) {
  PlainFloats<Step> out;
  for (std::size_t i = 0; i < kTogether; ++i) {
    auto x = static_cast<Step>(code_at<Bits>(a, i)), y = static_cast<Step>(code_at<Bits>(b, i));
    Step differs = x != y ? 1 : 0;
    Step low = x & ~sign, high = y & ~sign;
    out.differing += differs;
    out.bits_only += (low | high) == 0 ? differs : Step{0};
    Step along = low < high ? high - low : low - high;
    Step apart = ((x ^ y) & sign) != 0 ? low + high : along;
    out.max_steps = apart > out.max_steps ? apart : out.max_steps;
  }
  return out;
}

SHW_CPU_CLONES PlainFloats<std::uint32_t> compare_bytes(std::uint32_t sign, const std::byte* a,
                                                        const std::byte* b) {
  return compare_plain<std::uint8_t, std::uint32_t>(sign, a, b);
}
SHW_CPU_CLONES PlainFloats<std::uint32_t> compare_halves(std::uint32_t sign, const std::byte* a,
                                                         const std::byte* b) {
  return compare_plain<std::uint16_t, std::uint32_t>(sign, a, b);
}
SHW_CPU_CLONES PlainFloats<std::uint32_t> compare_singles(std::uint32_t sign, const std::byte* a,
                                                          const std::byte* b) {
  return compare_plain<std::uint32_t, std::uint32_t>(sign, a, b);
}

// x - x is 0 for finite x and NaN otherwise.
SHW_CPU_CLONES bool are_finite(const Numbers& numbers) {
  std::array<double, kLanes> odd{};
  for (std::size_t i = 0; i < kTogether; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      double u = numbers.a[i + lane], v = numbers.b[i + lane];
      odd[lane] += (u - u) + (v - v);
    }
  }
  return std::all_of(odd.begin(), odd.end(), [](double sum) { return sum == 0; });
}

SHW_CPU_CLONES double largest_distance(const Numbers& numbers) {
  std::array<double, kLanes> most{};
  for (std::size_t i = 0; i < kTogether; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      double apart = std::abs(numbers.a[i + lane] - numbers.b[i + lane]);
      most[lane] = apart > most[lane] ? apart : most[lane];
    }
  }
  return *std::max_element(most.begin(), most.end());
}

template <class Bits>
void add_floats(Dtype dtype, const std::byte* a, const std::byte* b, const Numbers& numbers,
                std::size_t count, ElementDifference& out) {
  const std::uint64_t sign = sign_of_codes(dtype);
  // Incomplete blocks, and blocks with non-finite elements, use the plain loop.
  if (count != kTogether || !are_finite(numbers))
    return add_non_finite<Bits>(sign, a, b, numbers, count, out);
  out.max_abs = std::max(out.max_abs, largest_distance(numbers));
  auto take = [&](const auto& seen) {
    out.differing += seen.differing;
    out.bits_only += seen.bits_only;
    out.max_ulp = std::max<std::uint64_t>(out.max_ulp, seen.max_steps);
  };
  const auto narrow_sign = static_cast<std::uint32_t>(sign);
  if constexpr (sizeof(Bits) == 8) take(compare_plain<std::uint64_t, std::uint64_t>(sign, a, b));
  if constexpr (sizeof(Bits) == 4) take(compare_singles(narrow_sign, a, b));
  if constexpr (sizeof(Bits) == 2) take(compare_halves(narrow_sign, a, b));
  if constexpr (sizeof(Bits) == 1) take(compare_bytes(narrow_sign, a, b));
}

template <class Whole>
void add_whole(const std::byte* a, const std::byte* b, std::size_t count, ElementDifference& out) {
  for (std::size_t i = 0; i < count; ++i) {
    Whole x = code_at<Whole>(a, i), y = code_at<Whole>(b, i);
    if (x == y) continue;
    ++out.differing;
    // Larger minus smaller modulo 2^64 is the exact difference of any two int64.
    auto high = static_cast<std::uint64_t>(std::max(x, y));
    auto low = static_cast<std::uint64_t>(std::min(x, y));
    out.max_whole = std::max(out.max_whole, high - low);
  }
  out.max_abs = static_cast<double>(out.max_whole);
}

void add_bools(const std::byte* a, const std::byte* b, std::size_t count, ElementDifference& out) {
  for (std::size_t i = 0; i < count; ++i) {
    if (a[i] == b[i]) continue;
    ++out.differing;
    bool same_value = (a[i] != std::byte{0}) == (b[i] != std::byte{0});
    if (same_value) ++out.bits_only;
    if (!same_value) out.max_whole = 1;
  }
  out.max_abs = static_cast<double>(out.max_whole);
}

void add_opaque(std::size_t width, const std::byte* a, const std::byte* b, std::size_t count,
                ElementDifference& out) {
  for (std::size_t i = 0; i < count; ++i) {
    if (std::memcmp(a + i * width, b + i * width, width) == 0) continue;
    ++out.differing;
  }
}

void add_whole_numbers(Dtype dtype, const std::byte* a, const std::byte* b, std::size_t count,
                       ElementDifference& out) {
  switch (dtype) {
    case Dtype::kInt8:
      return add_whole<std::int8_t>(a, b, count, out);
    case Dtype::kInt16:
      return add_whole<std::int16_t>(a, b, count, out);
    case Dtype::kInt32:
      return add_whole<std::int32_t>(a, b, count, out);
    case Dtype::kInt64:
      return add_whole<std::int64_t>(a, b, count, out);
    case Dtype::kUint8:
      return add_whole<std::uint8_t>(a, b, count, out);
    case Dtype::kUint16:
      return add_whole<std::uint16_t>(a, b, count, out);
    case Dtype::kUint32:
      return add_whole<std::uint32_t>(a, b, count, out);
    case Dtype::kUint64:
      return add_whole<std::uint64_t>(a, b, count, out);
    case Dtype::kBool:
      return add_bools(a, b, count, out);
    default:
      return add_opaque(size_of(dtype), a, b, count, out);
  }
}

// `numbers` must come from a float dtype.
void add_element_differences(Dtype dtype, const std::byte* a, const std::byte* b,
                             const Numbers& numbers, std::size_t count, ElementDifference& out) {
  const std::size_t width = size_of(dtype);
  if (!float_form(dtype)) return add_whole_numbers(dtype, a, b, count, out);
  if (width == 8) add_floats<std::uint64_t>(dtype, a, b, numbers, count, out);
  if (width == 4) add_floats<std::uint32_t>(dtype, a, b, numbers, count, out);
  if (width == 2) add_floats<std::uint16_t>(dtype, a, b, numbers, count, out);
  if (width == 1) add_floats<std::uint8_t>(dtype, a, b, numbers, count, out);
}

// Explicit vectors: the compiler's own vectorisation of the outer loop takes three times as
// long.
using FourDoubles = double __attribute__((vector_size(32)));
struct Lanes {
  FourDoubles ab{}, aa{}, bb{};
};

SHW_CPU_CLONES void add_finite_products(const Numbers& numbers, Lanes& to) {
  Lanes lanes = to;
  for (std::size_t i = 0; i < kTogether; i += 4) {
    FourDoubles u, v;
    std::memcpy(&u, numbers.a.data() + i, sizeof u);
    std::memcpy(&v, numbers.b.data() + i, sizeof v);
    lanes.ab += u * v;
    lanes.aa += u * u;
    lanes.bb += v * v;
  }
  to = lanes;
}

void add_products(Numbers& numbers, Lanes& lanes) {
  if (!are_finite(numbers)) {
    for (std::size_t i = 0; i < kTogether; ++i) {
      bool finite = std::isfinite(numbers.a[i]) && std::isfinite(numbers.b[i]);
      if (!finite) numbers.a[i] = numbers.b[i] = 0;
    }
  }
  add_finite_products(numbers, lanes);
}

double sum_of(const FourDoubles& lanes) {
  return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

ElementProducts products_of_lanes(const Lanes& lanes) {
  return {sum_of(lanes.ab), sum_of(lanes.aa), sum_of(lanes.bb)};
}

bool is_exact_in_double(Dtype dtype) {
  return to_numbers(dtype) != nullptr && dtype != Dtype::kInt64 && dtype != Dtype::kUint64;
}

}  // namespace

void ElementDifference::add(const ElementDifference& other, std::uint64_t begin) {
  differing += other.differing;
  bits_only += other.bits_only;
  nan += other.nan;
  beyond += other.beyond;
  max_abs = std::max(max_abs, other.max_abs);
  max_whole = std::max(max_whole, other.max_whole);
  max_ulp = std::max(max_ulp, other.max_ulp);
  if (!first && other.first) first = begin + *other.first;
}

ElementProducts& ElementProducts::operator+=(const ElementProducts& other) {
  ab += other.ab;
  aa += other.aa;
  bb += other.bb;
  return *this;
}

std::optional<double> ElementProducts::cosine() const {
  double cosine = ab / std::sqrt(aa) / std::sqrt(bb);
  if (!std::isfinite(ab) || !std::isfinite(cosine)) return std::nullopt;
  return std::clamp(cosine, -1.0, 1.0);
}

ElementDifference difference_of(Dtype dtype, const std::byte* a, const std::byte* b,
                                std::size_t count, ElementProducts* products) {
  ElementDifference out;
  Numbers numbers;
  Lanes lanes;
  const std::size_t width = size_of(dtype);
  const ToNumbers convert_all = to_numbers(dtype);
  for (std::size_t begin = 0; begin < count; begin += kTogether) {
    const std::size_t together = std::min(kTogether, count - begin);
    const std::byte *left = a + begin * width, *right = b + begin * width;
    const bool differs = std::memcmp(left, right, together * width) != 0;
    if (convert_all != nullptr && (differs || products != nullptr)) {
      zero_unused_end(numbers, together);
      convert_all(left, together, numbers.a.data());
      convert_all(right, together, numbers.b.data());
    }
    if (differs) {
      if (!out.first) out.first = begin + first_differing_element(left, right, width, together);
      add_element_differences(dtype, left, right, numbers, together, out);
    }
    if (convert_all != nullptr && products != nullptr) add_products(numbers, lanes);
  }
  if (products != nullptr) *products += products_of_lanes(lanes);
  return out;
}

ElementDifference difference_of(Dtype a_dtype, const std::byte* a, Dtype b_dtype,
                                const std::byte* b, std::size_t count) {
  ElementDifference out;
  Numbers numbers;
  for (std::size_t begin = 0; begin < count; begin += kTogether) {
    std::size_t together = std::min(kTogether, count - begin);
    to_numbers(a_dtype)(a + begin * size_of(a_dtype), together, numbers.a.data());
    to_numbers(b_dtype)(b + begin * size_of(b_dtype), together, numbers.b.data());
    for (std::size_t i = 0; i < together; ++i) {
      double u = numbers.a[i], v = numbers.b[i];
      bool nan = std::isnan(u) || std::isnan(v);
      if (u == v || (nan && std::isnan(u) == std::isnan(v))) continue;
      if (!out.first) out.first = begin + i;
      ++out.differing;
      if (nan) ++out.nan;
      if (!nan) out.max_abs = std::max(out.max_abs, std::abs(u - v));
    }
  }
  return out;
}

bool can_compare(Dtype a, Dtype b) {
  return is_exact_in_double(a) && is_exact_in_double(b);
}

ElementProducts products_of(Dtype a_dtype, const std::byte* a, Dtype b_dtype, const std::byte* b,
                            std::size_t count) {
  ToNumbers a_numbers = to_numbers(a_dtype), b_numbers = to_numbers(b_dtype);
  if (a_numbers == nullptr || b_numbers == nullptr) return {};
  Lanes lanes;
  Numbers numbers;
  for (std::size_t begin = 0; begin < count; begin += kTogether) {
    std::size_t together = std::min(kTogether, count - begin);
    zero_unused_end(numbers, together);
    a_numbers(a + begin * size_of(a_dtype), together, numbers.a.data());
    b_numbers(b + begin * size_of(b_dtype), together, numbers.b.data());
    add_products(numbers, lanes);
  }
  return products_of_lanes(lanes);
}

std::uint64_t count_beyond_tolerance(const Tolerance& tolerance, Dtype a_dtype, const std::byte* a,
                                     Dtype b_dtype, const std::byte* b, std::size_t count) {
  const ToNumbers a_numbers = to_numbers(a_dtype), b_numbers = to_numbers(b_dtype);
  if (a_numbers == nullptr || b_numbers == nullptr)
    return difference_of(a_dtype, a, b, count).differing;
  std::uint64_t beyond = 0;
  Numbers numbers;
  for (std::size_t begin = 0; begin < count; begin += kTogether) {
    const std::size_t together = std::min(kTogether, count - begin);
    a_numbers(a + begin * size_of(a_dtype), together, numbers.a.data());
    b_numbers(b + begin * size_of(b_dtype), together, numbers.b.data());
    for (std::size_t i = 0; i < together; ++i) {
      const double u = numbers.a[i], v = numbers.b[i];
      const bool same = u == v || (std::isnan(u) && std::isnan(v));
      const double most = tolerance.absolute + tolerance.relative * std::abs(v);
      // An infinity is as near to a finite number as NaN is; the comparison refuses both.
      const bool near = std::isfinite(u) && std::isfinite(v) && std::abs(u - v) <= most;
      beyond += same || near ? 0 : 1;
    }
  }
  return beyond;
}

std::uint64_t ulps_between(Dtype dtype, std::uint64_t a, std::uint64_t b) {
  return steps(a, b, sign_of_codes(dtype));
}

}  // namespace shw
