// Finds values that a conversion changed: shifted by 1, multiplied, rounded, left at zero.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/base/words.h"
#include "core/facts/values/added_tensor.h"
#include "core/facts/values/value_reader.h"
#include "core/maps/diagnose_rows.h"
#include "core/tensor/cast.h"

namespace shw {
namespace {

// Tolerance for bfloat16, which has 8 significant bits.
constexpr double kValueRounding = 1.0 / 64;

struct FoundAndExpectedValues {
  std::vector<float> there, expected;
};

bool all_equal_to(const std::vector<float>& values, float value) {
  return std::all_of(values.begin(), values.end(), [&](float one) { return one == value; });
}

std::optional<std::string> never_written(const FoundAndExpectedValues& values) {
  for (const float value : {0.0F, 1.0F}) {
    if (all_equal_to(values.there, value) && !all_equal_to(values.expected, value))
      return fmt::format("every element is {}, as before a load: the conversion did not write it",
                         value == 0 ? "0" : "1");
  }
  return std::nullopt;
}

std::optional<std::string> shifted_values_text(const FoundAndExpectedValues& values) {
  const std::size_t count = values.there.size();
  if (count < 4) return std::nullopt;
  const float shift = values.there[0] > values.expected[0] ? 1.0F : -1.0F;
  for (std::size_t i = 0; i < count; ++i) {
    const float largest =
        std::max({1.0F, std::fabs(values.there[i]), std::fabs(values.expected[i])});
    if (!(std::fabs(values.there[i] - values.expected[i] - shift) <=
          static_cast<float>(kValueRounding) * largest))
      return std::nullopt;
  }
  return fmt::format(
      "every element is {} by 1: a norm that multiplies by 1 + weight was taken for one that "
      "multiplies by weight, or the other way round (where all norms are so, PATH/@norms:{}1 "
      "is the checkpoint as it should be)",
      shift > 0 ? "larger" : "smaller", shift > 0 ? "-" : "+");
}

// The constant factor between both sides; 0 if there is none.
double factor_of(const FoundAndExpectedValues& values) {
  std::size_t largest = 0;
  for (std::size_t i = 1; i < values.expected.size(); ++i) {
    if (std::fabs(values.expected[i]) > std::fabs(values.expected[largest])) largest = i;
  }
  const double factor = static_cast<double>(values.there[largest]) / values.expected[largest];
  if (!std::isfinite(factor) || factor == 0) return 0;
  for (std::size_t i = 0; i < values.there.size(); ++i) {
    const double is = values.there[i], was = values.expected[i] * factor;
    if (!(std::fabs(is - was) <= kValueRounding * std::max(std::fabs(is), std::fabs(was)) + 1e-30))
      return 0;
  }
  return factor;
}

std::optional<std::string> scaled_values_text(const FoundAndExpectedValues& values) {
  // Any one or two numbers are multiples of others, so at least four are required.
  if (values.there.size() < 4) return std::nullopt;
  const double factor = factor_of(values);
  if (factor == 0) return std::nullopt;
  // The next training steps change weights by as little.
  if (std::fabs(factor - 1) <= 2 * kValueRounding) return std::nullopt;
  return fmt::format(
      "every element is {:.4g} times the one that was expected: a scale was applied "
      "that does not belong there, or was left out",
      factor);
}

// Lines along a dim of a matrix that follow one another are zero, and all others are right. Behind
// zero rows is at most padding.
std::optional<std::string> zero_lines_text(const FoundAndExpectedValues& values, std::size_t count,
                                           bool are_columns) {
  if (count < 2) return std::nullopt;
  const std::size_t row = are_columns ? count : values.there.size() / count;
  const auto line_of = [&](std::size_t i) { return are_columns ? i % row : i / row; };
  std::vector<bool> is_zero(count, true);
  std::size_t first = count, end = 0;  // lines that differ
  for (std::size_t i = 0; i < values.there.size(); ++i) {
    const std::size_t line = line_of(i);
    if (values.there[i] != 0) is_zero[line] = false;
    if (values.there[i] == values.expected[i]) continue;
    if (values.there[i] != 0) return std::nullopt;
    first = std::min(first, line);
    end = std::max(end, line + 1);
  }
  if (first >= end || (first == 0 && end == count)) return std::nullopt;
  for (std::size_t line = first; line < end; ++line) {
    if (!is_zero[line]) return std::nullopt;
  }
  while (end < count && is_zero[end]) ++end;
  const char* const word = are_columns ? "columns" : "rows";
  return fmt::format(
      "{0} {1} to {2} are zero, and all other {0} are right: they were {3}", word, first, end - 1,
      end == count && !are_columns ? "cut off and filled up again" : "never written");
}

std::optional<std::string> zero_part_text(const FoundAndExpectedValues& values,
                                          const Extents& shape) {
  if (shape.empty()) return std::nullopt;
  const auto rows = static_cast<std::size_t>(shape.front());
  if (auto text = zero_lines_text(values, rows, false)) return text;
  if (shape.size() != 2) return std::nullopt;
  return zero_lines_text(values, static_cast<std::size_t>(shape.back()), true);
}

// Describes elements that equal the expected ones rounded to a narrower dtype, to the bit.
std::optional<std::string> rounded_values_text(const LoadedTensor& there,
                                               const LoadedTensor& expected) {
  for (const Dtype narrow :
       {Dtype::kBfloat16, Dtype::kFloat16, Dtype::kFloat8E4m3fn, Dtype::kFloat8E5m2}) {
    if (narrow == expected.dtype || !can_cast(expected.dtype, narrow) ||
        keeps_every_value(narrow, expected.dtype))
      continue;
    const auto cast = cast_elements(expected.dtype, expected.bytes, narrow);
    if (!cast) continue;
    const auto back = cast_elements(narrow, *cast, expected.dtype);
    if (back && std::equal(back->begin(), back->end(), there.bytes.begin(), there.bytes.end()))
      return fmt::format(
          "every element was rounded to {} on the way: what was rounded off is not "
          "in this checkpoint",
          name(narrow));
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> diagnose_values(const LoadedTensor& there,
                                           const LoadedTensor& expected) {
  if (!has_values(there.dtype) || !has_values(expected.dtype) || there.shape != expected.shape ||
      there.bytes.empty())
    return std::nullopt;
  const FoundAndExpectedValues values{to_floats(there.dtype, there.bytes),
                                      to_floats(expected.dtype, expected.bytes)};
  if (auto text = never_written(values)) return text;
  if (auto text = shifted_values_text(values)) return text;
  if (auto text = zero_part_text(values, there.shape)) return text;
  if (auto text = rounded_values_text(there, expected)) return text;
  if (is_addition_supported(there.dtype) &&
      are_bits_lost_by_adding_one(there.dtype, there.bytes, expected.bytes))
    return fmt::format(
        "every element was shifted by 1 in {} and shifted back: what that rounds off is not in "
        "this checkpoint",
        name(there.dtype));
  return scaled_values_text(values);
}

}  // namespace shw
