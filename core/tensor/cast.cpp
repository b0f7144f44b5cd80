#include "core/tensor/cast.h"

#include <cassert>
#include <cstring>

#include "core/tensor/convert.h"

namespace shw {
namespace {

// torch goes through float for every narrow type, from double too (c10::BFloat16(float)).
template <NarrowFloat form, class Code>
struct Narrow {
  static constexpr std::size_t kSize = sizeof(Code);
  static double get(const std::byte* at) {
    Code code;
    std::memcpy(&code, at, sizeof code);
    return from_narrow<form>(code);
  }
  static void put(std::byte* at, double value) {
    auto code = static_cast<Code>(to_narrow<form>(static_cast<float>(value)));
    std::memcpy(at, &code, sizeof code);
  }
};
template <class Real>
struct Wide {
  static constexpr std::size_t kSize = sizeof(Real);
  static double get(const std::byte* at) {
    Real value;
    std::memcpy(&value, at, sizeof value);
    return static_cast<double>(value);
  }
  static void put(std::byte* at, double value) {
    Real narrowed = static_cast<Real>(value);
    std::memcpy(at, &narrowed, sizeof narrowed);
  }
};

struct Access {
  double (*get)(const std::byte*) = nullptr;
  void (*put)(std::byte*, double) = nullptr;
};
template <class Type>
constexpr Access access_of() {
  return {&Type::get, &Type::put};
}

Access access(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat64:
      return access_of<Wide<double>>();
    case Dtype::kFloat32:
      return access_of<Wide<float>>();
    case Dtype::kFloat16:
      return access_of<Narrow<kFloat16Form, std::uint16_t>>();
    case Dtype::kBfloat16:
      return access_of<Narrow<kBfloat16Form, std::uint16_t>>();
    case Dtype::kFloat8E4m3fn:
      return access_of<Narrow<kE4m3fnForm, std::uint8_t>>();
    case Dtype::kFloat8E5m2:
      return access_of<Narrow<kE5m2Form, std::uint8_t>>();
    case Dtype::kFloat8E4m3fnuz:
      return access_of<Narrow<kE4m3fnuzForm, std::uint8_t>>();
    case Dtype::kFloat8E5m2fnuz:
      return access_of<Narrow<kE5m2fnuzForm, std::uint8_t>>();
    default:
      return {};
  }
}

}  // namespace

bool can_cast(Dtype from, Dtype to) {
  return from == to ? size_of(from) != 0 : access(from).get != nullptr && access(to).get != nullptr;
}

void cast_row(Dtype from, const std::byte* source, std::int64_t source_stride, Dtype to,
              std::byte* target, std::int64_t target_stride, std::int64_t count) {
  Access reader = access(from), writer = access(to);
  assert(reader.get != nullptr && writer.put != nullptr);
  for (std::int64_t i = 0; i < count; ++i) {
    writer.put(target, reader.get(source));
    source += source_stride;
    target += target_stride;
  }
}

Result<std::vector<std::byte>> cast_elements(Dtype from, std::span<const std::byte> bytes,
                                             Dtype to) {
  if (!can_cast(from, to)) {
    return fail(ErrorKind::kUnsupported, "there is no cast from " + std::string(name(from)) +
                                             " to " + std::string(name(to)));
  }
  if (from == to) return std::vector<std::byte>(bytes.begin(), bytes.end());
  std::size_t count = bytes.size() / size_of(from);
  std::vector<std::byte> out(count * size_of(to));
  cast_row(from, bytes.data(), size_of(from), to, out.data(), size_of(to),
           static_cast<std::int64_t>(count));
  return out;
}

}  // namespace shw
