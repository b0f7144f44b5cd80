#include "core/tensor/cast.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/tensor/convert.h"
#include "core/tensor/cpu_clones.h"
#include "core/tensor/float_steps.h"
#include "core/tensor/number_form.h"

namespace shw {
namespace {

// torch converts every narrow type by way of float, also from double (c10::BFloat16(float)), and so
// does this code: blocks of elements are converted to float and then to the target type. Both loops
// are branch-free (float_steps.h), so that the compiler vectorises them.
constexpr std::int64_t kCastAtOnce = 256;

// --- to float

template <NarrowFloat form, class Code>
SHW_CPU_CLONES void widen_by_table(const std::byte* in, float* out, std::int64_t count) {
  static const auto kTable = [] {
    std::array<float, 256> table{};
    for (std::uint32_t code = 0; code < 256; ++code) table[code] = from_narrow<form>(code);
    return table;
  }();
  for (std::int64_t i = 0; i < count; ++i) out[i] = kTable[static_cast<std::size_t>(in[i])];
}

template <NarrowFloat form>
SHW_CPU_CLONES void widen_16(const std::byte* in, float* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint16_t code;
    std::memcpy(&code, in + 2 * i, sizeof code);
    out[i] = widened<form>(code);
  }
}

SHW_CPU_CLONES void widen_float64(const std::byte* in, float* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    double value;
    std::memcpy(&value, in + 8 * i, sizeof value);
    out[i] = static_cast<float>(value);
  }
}

void widen_float32(const std::byte* in, float* out, std::int64_t count) {
  std::memcpy(out, in, static_cast<std::size_t>(count) * sizeof(float));
}

// --- from float

template <NarrowFloat form, class Code>
SHW_CPU_CLONES void narrow_to(const float* in, std::byte* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    auto narrow = static_cast<Code>(narrowed<form>(in[i]));
    std::memcpy(out + i * static_cast<std::int64_t>(sizeof narrow), &narrow, sizeof narrow);
  }
}

SHW_CPU_CLONES void to_float64(const float* in, std::byte* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    auto value = static_cast<double>(in[i]);
    std::memcpy(out + 8 * i, &value, sizeof value);
  }
}

void to_float32(const float* in, std::byte* out, std::int64_t count) {
  std::memcpy(out, in, static_cast<std::size_t>(count) * sizeof(float));
}

// --- out-of-range checks

template <NarrowFloat form>
SHW_CPU_CLONES void mark_out_of_range_floats(const float* in, std::uint8_t* out_of_range,
                                             std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    out_of_range[i] |= static_cast<std::uint8_t>(is_out_of_range<form>(in[i]));
}

// Marks doubles that are at least half a step beyond the largest float.
SHW_CPU_CLONES void mark_out_of_range_doubles(const std::byte* in, std::uint8_t* out_of_range,
                                              std::int64_t count) {
  constexpr std::uint64_t kFirst = 0x47EFFFFFF0000000u, kInfinity = 0x7FF0000000000000u;
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint64_t bits;
    std::memcpy(&bits, in + 8 * i, sizeof bits);
    out_of_range[i] |=
        static_cast<std::uint8_t>((bits & ~(std::uint64_t{1} << 63)) - kFirst < kInfinity - kFirst);
  }
}

struct CastFunctions {
  void (*widen)(const std::byte*, float*, std::int64_t) = nullptr;
  void (*narrow)(const float*, std::byte*, std::int64_t) = nullptr;
  void (*note)(const float*, std::uint8_t*, std::int64_t) = nullptr;  // null: represents all floats
  float largest = std::numeric_limits<float>::max();
  bool has_infinity = true;
};

template <NarrowFloat form, class Code>
CastFunctions narrow_cast_functions(void (*widen)(const std::byte*, float*, std::int64_t)) {
  return {widen, narrow_to<form, Code>, mark_out_of_range_floats<form>,
          from_narrow<form>(largest_code<form>()), form.specials == NarrowSpecials::kIeee};
}

CastFunctions access(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat64:
      return {widen_float64, to_float64};
    case Dtype::kFloat32:
      return {widen_float32, to_float32};
    case Dtype::kFloat16:
      return narrow_cast_functions<kFloat16Form, std::uint16_t>(widen_16<kFloat16Form>);
    case Dtype::kBfloat16:
      return narrow_cast_functions<kBfloat16Form, std::uint16_t>(widen_16<kBfloat16Form>);
    case Dtype::kFloat8E4m3fn:
      return narrow_cast_functions<kE4m3fnForm, std::uint8_t>(
          widen_by_table<kE4m3fnForm, std::uint8_t>);
    case Dtype::kFloat8E5m2:
      return narrow_cast_functions<kE5m2Form, std::uint8_t>(
          widen_by_table<kE5m2Form, std::uint8_t>);
    case Dtype::kFloat8E4m3fnuz:
      return narrow_cast_functions<kE4m3fnuzForm, std::uint8_t>(
          widen_by_table<kE4m3fnuzForm, std::uint8_t>);
    case Dtype::kFloat8E5m2fnuz:
      return narrow_cast_functions<kE5m2fnuzForm, std::uint8_t>(
          widen_by_table<kE5m2fnuzForm, std::uint8_t>);
    default:
      return {};
  }
}

// Copies elements from or to strided places.
void copy_strided_elements(const std::byte* source, std::int64_t source_stride, std::byte* target,
                           std::int64_t target_stride, std::int64_t count, std::size_t size) {
  for (std::int64_t i = 0; i < count; ++i)
    std::memcpy(target + i * target_stride, source + i * source_stride, size);
}

}  // namespace

bool is_plain_float(Dtype dtype) {
  return dtype == Dtype::kFloat64 || dtype == Dtype::kFloat32 || dtype == Dtype::kFloat16 ||
         dtype == Dtype::kBfloat16;
}

bool can_cast(Dtype from, Dtype to) {
  return from == to ? size_of(from) != 0
                    : access(from).widen != nullptr && access(to).narrow != nullptr;
}

bool can_represent(Dtype to, Dtype from) {
  if (from == to || to == Dtype::kFloat64) return true;
  const CastFunctions one = access(from), other = access(to);
  return from != Dtype::kFloat64 && one.largest <= other.largest &&
         (other.has_infinity || !one.has_infinity);
}

bool keeps_every_value(Dtype to, Dtype from) {
  if (from == to) return true;
  const auto source = float_form(from), target = float_form(to);
  if (!source || !target || !can_represent(to, from)) return false;
  // The fnuz forms have no -0.
  const bool keeps_sign = target->specials != NarrowSpecials::kFnuz ||
                          source->specials == NarrowSpecials::kFnuz ||
                          source->specials == NarrowSpecials::kE8m0;
  return keeps_sign && target->mantissa_bits >= source->mantissa_bits &&
         unit_exponent(*target) <= unit_exponent(*source);
}

std::string out_of_range_text(Dtype to) {
  const float largest = access(to).largest;
  const std::string number = fmt::format("{}", largest);
  const float endless = std::numeric_limits<float>::infinity();
  float made = endless;
  std::array<std::byte, 8> code;
  if (to != Dtype::kFloat32) {
    cast_row(Dtype::kFloat32, reinterpret_cast<const std::byte*>(&endless), 4, to, code.data(), 8,
             1);
    cast_row(to, code.data(), 8, Dtype::kFloat32, reinterpret_cast<std::byte*>(&made), 4, 1);
  }
  const char* becomes = std::isnan(made) ? "NaN" : std::isinf(made) ? "infinity" : number.c_str();
  return fmt::format("what is beyond {} becomes {}", number, becomes);
}

void cast_row(Dtype from, const std::byte* source, std::int64_t source_stride, Dtype to,
              std::byte* target, std::int64_t target_stride, std::int64_t count,
              std::uint8_t* out_of_range) {
  CastFunctions reader = access(from), writer = access(to);
  assert(reader.widen != nullptr && writer.narrow != nullptr);
  std::array<float, kCastAtOnce> values;
  std::array<std::byte, kCastAtOnce * 8> beside;  // float64 is the widest
  auto wide = static_cast<std::int64_t>(size_of(from));
  auto narrow = static_cast<std::int64_t>(size_of(to));
  for (std::int64_t done = 0; done < count; done += kCastAtOnce) {
    std::int64_t now = std::min(kCastAtOnce, count - done);
    const std::byte* in = source + done * source_stride;
    std::byte* out = target + done * target_stride;
    if (source_stride != wide) {
      copy_strided_elements(in, source_stride, beside.data(), wide, now, size_of(from));
      in = beside.data();
    }
    reader.widen(in, values.data(), now);
    if (out_of_range != nullptr) {
      // Checked against float even if the target is float64: doubles also pass through float.
      if (from == Dtype::kFloat64) mark_out_of_range_doubles(in, out_of_range + done, now);
      if (writer.note != nullptr) writer.note(values.data(), out_of_range + done, now);
    }
    writer.narrow(values.data(), target_stride == narrow ? out : beside.data(), now);
    if (target_stride != narrow)
      copy_strided_elements(beside.data(), narrow, out, target_stride, now, size_of(to));
  }
}

Result<std::vector<std::byte>> cast_elements(Dtype from, std::span<const std::byte> bytes, Dtype to,
                                             std::uint8_t* out_of_range) {
  if (!can_cast(from, to)) {
    return fail(ErrorKind::kUnsupported, "there is no cast from " + std::string(name(from)) +
                                             " to " + std::string(name(to)));
  }
  if (from == to) return std::vector<std::byte>(bytes.begin(), bytes.end());
  std::size_t count = bytes.size() / size_of(from);
  std::vector<std::byte> out(count * size_of(to));
  cast_row(from, bytes.data(), size_of(from), to, out.data(), size_of(to),
           static_cast<std::int64_t>(count), out_of_range);
  return out;
}

}  // namespace shw
