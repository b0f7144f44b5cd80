#include "core/learn/nearly_equal.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/facts/values/value_reader.h"

namespace shw {
namespace {

// Limit for norms, which one program may store as w and another as 1 + w.
constexpr std::int64_t kMaxNormElements = 1 << 20;
// Limit on candidates that are compared.
constexpr std::size_t kMaxNearlyEqualTried = 64;

std::optional<TensorValues> norm_of(const LearnSide& side, std::size_t tensor) {
  const auto elements = volume(side.shapes[tensor]);
  if (!elements || *elements < 2 || *elements > kMaxNormElements ||
      !has_values(side.dtypes[tensor]))
    return std::nullopt;
  auto values = read_tensor(*side.checkpoint, TensorId{static_cast<std::uint32_t>(tensor)},
                            static_cast<std::uint64_t>(kMaxNormElements) * sizeof(double));
  if (!values || values->uncovered != 0) return std::nullopt;
  return std::move(*values);
}

// Distance between neighbouring numbers near 1.
double spacing_at_one(Dtype dtype) {
  switch (dtype) {
    case Dtype::kBfloat16:
      return 0x1p-7;
    case Dtype::kFloat16:
      return 0x1p-10;
    case Dtype::kFloat32:
      return 0x1p-23;
    default:
      return 0x1p-52;
  }
}

// True if every element equals the other one plus `added`, up to the rounding of either side.
bool is_shifted(const TensorValues& one, const TensorValues& other, double added) {
  const double step = std::max(spacing_at_one(one.dtype), spacing_at_one(other.dtype));
  for (std::size_t i = 0; i < count_in(one); ++i) {
    const double a = value_at(one.dtype, one.bytes, i), b = value_at(other.dtype, other.bytes, i);
    const double largest = std::max({std::abs(a), std::abs(b), 1.0});
    if (!(std::abs(a - (b + added)) <= step * largest)) return false;
  }
  return true;
}

}  // namespace

std::string nearly_equal_text(const LearnSide& side, std::size_t tensor, const LearnSide& other,
                              const std::vector<std::size_t>& candidates) {
  const auto mine = norm_of(side, tensor);
  if (!mine) return {};
  std::size_t tried = 0;
  for (std::size_t candidate : candidates) {
    if (other.shapes[candidate] != side.shapes[tensor]) continue;
    if (++tried > kMaxNearlyEqualTried) break;
    const auto theirs = norm_of(other, candidate);
    if (!theirs) continue;
    for (const double added : {1.0, -1.0}) {
      if (!is_shifted(*mine, *theirs, added)) continue;
      return fmt::format(
          "each element is nearly 1 {} than that of {} (norms kept as w and as 1 + w), but "
          "rounded in another way than a sum in float32",
          added > 0 ? "more" : "less", other.names[candidate]);
    }
  }
  return {};
}

}  // namespace shw
