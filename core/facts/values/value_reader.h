// Reads whole tensors as numbers for value rules, within a limit.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "core/facts/check_input.h"
#include "core/formats/items/items.h"
#include "core/tensor/convert.h"

namespace shw {

// The part of a check's read limit for one rule; the rule reports what it left out.
struct ValueBudget {
  std::uint64_t per_tensor = std::uint64_t{256} << 20;
  std::uint64_t left = std::uint64_t{1} << 30;
  std::int64_t left_out = 0;  // number of tensors
};

// Two tensors are held at a time, plus a chunk while one is assembled.
inline ValueBudget value_budget(const CheckInput& input) {
  ValueBudget budget;
  budget.per_tensor = std::min(budget.per_tensor, input.memory / 4);
  return budget;
}

inline bool has_values(Dtype dtype) {
  return dtype == Dtype::kFloat32 || dtype == Dtype::kFloat64 || dtype == Dtype::kFloat16 ||
         dtype == Dtype::kBfloat16;
}

// Charges the tensor to the budget; false if it does not fit.
inline bool is_within(const Checkpoint& c, TensorId tensor, ValueBudget& budget) {
  const auto count = static_cast<std::uint64_t>(volume(c.shape(tensor)).value_or(0));
  const std::uint32_t width = size_of(c.dtype(tensor));
  if (count > budget.per_tensor / width || count * width > budget.left) {
    ++budget.left_out;
    return false;
  }
  budget.left -= count * width;
  return true;
}

// The tensor if it is a float, complete and within the limits.
inline std::optional<TensorValues> read_values(const CheckInput& input, TensorId tensor,
                                               ValueBudget& budget) {
  const Checkpoint& c = input.checkpoint;
  if (c.directory() == nullptr || !has_values(c.dtype(tensor))) return std::nullopt;
  if (input.tilings[index_of(tensor)].tiling != Tiling::kExact) return std::nullopt;
  const auto count = static_cast<std::uint64_t>(volume(c.shape(tensor)).value_or(0));
  if (count == 0 || !is_within(c, tensor, budget)) return std::nullopt;
  auto values = read_tensor(c, tensor, budget.per_tensor);
  // Damaged and unreadable items are reported by bad-record and not-looked-at.
  if (!values || values->uncovered != 0 || values->bytes.size() != count * size_of(values->dtype))
    return std::nullopt;
  return std::move(*values);
}

template <class Bits>
Bits bits_at(BytesView bytes, std::size_t i) {
  Bits bits;
  std::memcpy(&bits, bytes.data() + i * sizeof(Bits), sizeof(Bits));
  return bits;
}

// Element i of a dtype with values.
inline double value_at(Dtype dtype, BytesView bytes, std::size_t i) {
  switch (dtype) {
    case Dtype::kFloat64:
      return std::bit_cast<double>(bits_at<std::uint64_t>(bytes, i));
    case Dtype::kFloat16:
      return from_narrow<kFloat16Form, double>(bits_at<std::uint16_t>(bytes, i));
    case Dtype::kBfloat16:
      return from_narrow<kBfloat16Form, double>(bits_at<std::uint16_t>(bytes, i));
    default:
      return std::bit_cast<float>(bits_at<std::uint32_t>(bytes, i));
  }
}

// Converts elements [first, first + out.size()).
inline void to_doubles(Dtype dtype, BytesView bytes, std::size_t first, std::span<double> out) {
  auto each = [&](auto value) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = value(first + i);
  };
  switch (dtype) {
    case Dtype::kFloat64:
      return each([&](std::size_t i) { return value_at(Dtype::kFloat64, bytes, i); });
    case Dtype::kFloat16:
      return each([&](std::size_t i) { return value_at(Dtype::kFloat16, bytes, i); });
    case Dtype::kBfloat16:
      return each([&](std::size_t i) { return value_at(Dtype::kBfloat16, bytes, i); });
    default:
      return each([&](std::size_t i) { return value_at(Dtype::kFloat32, bytes, i); });
  }
}

inline std::vector<float> to_floats(Dtype dtype, BytesView bytes) {
  std::vector<float> out(bytes.size() / size_of(dtype));
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<float>(value_at(dtype, bytes, i));
  return out;
}

inline std::size_t count_in(const TensorValues& values) {
  return values.bytes.size() / size_of(values.dtype);
}

}  // namespace shw
