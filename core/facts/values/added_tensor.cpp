#include "core/facts/values/added_tensor.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/words.h"
#include "core/facts/values/quant_numbers.h"
#include "core/facts/values/value_reader.h"
#include "core/tensor/cast.h"

namespace shw {
namespace {

constexpr std::array<float, 2> kShifts{1.0F, -1.0F};
constexpr const char* kAddRemedy = "add";
constexpr const char* kAddedEvidence = "add";

Result<Bytes> add_to_elements(std::vector<float> elements, float value, Dtype dtype) {
  for (float& element : elements) element += value;
  return rounded_to(dtype, elements);
}

bool are_equal_sums(BytesView made, Dtype dtype, BytesView of, float value) {
  const auto added = add_to_elements(to_floats(dtype, of), value, dtype);
  return added && std::equal(added->begin(), added->end(), made.begin(), made.end());
}

// Compares the first 64 elements before all of them, because nearly every other tensor differs
// there already.
bool are_sums_with_quick_check(BytesView made, Dtype dtype, BytesView of, float value) {
  const std::size_t first = std::min({made.size(), of.size(), std::size_t{64} * size_of(dtype)});
  return are_equal_sums(made.first(first), dtype, of.first(first), value) &&
         are_equal_sums(made, dtype, of, value);
}

bool is_addition_reversible(const std::vector<float>& before, float value, Dtype saved,
                            Dtype dtype) {
  const auto added = add_to_elements(before, value, dtype);
  const auto back = added ? add_to_elements(to_floats(dtype, *added), -value, saved) : added;
  const auto own = rounded_to(saved, before);
  return back && own && *back == *own;
}

}  // namespace

bool is_addition_supported(Dtype dtype) {
  return is_plain_float(dtype) && dtype != Dtype::kFloat64;
}

ComputedTensor added_tensor(std::shared_ptr<const Checkpoint> checkpoint, TensorId tensor,
                            float value, Dtype dtype) {
  ComputedTensor made{.fqn = std::string(checkpoint->fqn(tensor)),
                      .dtype = dtype,
                      .shape = copy_of(checkpoint->shape(tensor)),
                      .make = {},
                      .is_rounded = true};
  made.make = [checkpoint = std::move(checkpoint), tensor, value, dtype](
                  std::int64_t first, std::int64_t count) -> Result<Bytes> {
    SHW_TRY(
        std::vector<float> elements,
        read_box_floats(*checkpoint, tensor, rows_box(checkpoint->shape(tensor), first, count)));
    return add_to_elements(std::move(elements), value, dtype);
  };
  return made;
}

bool is_added_exactly(const Checkpoint& checkpoint, TensorId tensor, const Box& box, float value,
                      Dtype dtype) {
  const auto elements = read_box_floats(checkpoint, tensor, box);
  return elements && is_addition_reversible(*elements, value, checkpoint.dtype(tensor), dtype);
}

std::optional<FoundShift> find_constant_shift(Dtype dtype, BytesView there, BytesView expected) {
  constexpr std::size_t kFewest = 4;  // fewer elements differ by 1 by chance
  if (there.size() != expected.size() || there.size() < kFewest * size_of(dtype))
    return std::nullopt;
  for (const int value : {1, -1}) {
    const auto added = static_cast<float>(value);
    const bool is_exact = are_sums_with_quick_check(expected, dtype, there, added);
    if (is_exact || are_sums_with_quick_check(there, dtype, expected, -added))
      return FoundShift{value, is_exact};
  }
  return std::nullopt;
}

bool are_bits_lost_by_adding_one(Dtype dtype, BytesView there, BytesView expected) {
  constexpr std::size_t kFewest = 16;  // fewer elements are round by chance
  if (there.size() != expected.size() || there.size() < kFewest * size_of(dtype)) return false;
  const auto is_shifted = [&](std::size_t size, float value) {
    const auto added = add_to_elements(to_floats(dtype, expected.first(size)), value, dtype);
    return added && are_sums_with_quick_check(there.first(size), dtype, *added, -value);
  };
  return std::any_of(kShifts.begin(), kShifts.end(), [&](float value) {
    return is_shifted(kFewest * size_of(dtype), value) && is_shifted(there.size(), value);
  });
}

void set_remedy_of_adding(const std::vector<FoundShift>& shifts, Finding& finding) {
  const bool are_alike =
      !shifts.empty() && std::all_of(shifts.begin(), shifts.end(), [&](const FoundShift& one) {
        return one.value == shifts.front().value;
      });
  if (!are_alike || shifts.size() != finding.subjects.size()) return;
  const bool is_exact =
      std::all_of(shifts.begin(), shifts.end(), [](const FoundShift& one) { return one.is_exact; });
  const bool adds = shifts.front().value > 0;
  finding.evidence.emplace_back(kAddedEvidence, std::int64_t{shifts.front().value});
  finding.remedy = Remedy{
      kAddRemedy, is_exact,
      fmt::format("{} 1 {} every element of {} in float32, rounded to its dtype: {}.",
                  adds ? "Add" : "Take", adds ? "to" : "off", plural(shifts.size(), "tensor"),
                  is_exact ? "that gives the reference's elements bit for bit"
                           : "the digits that the wrong conversion rounded off are not in this "
                             "checkpoint; convert again")};
}

int number_added_by_remedy(const Finding& finding) {
  if (!finding.remedy || finding.remedy->kind != kAddRemedy) return 0;
  for (const auto& [key, value] : finding.evidence) {
    const auto* number = std::get_if<std::int64_t>(&value);
    if (key == kAddedEvidence && number != nullptr) return *number > 0 ? 1 : -1;
  }
  return 0;
}

}  // namespace shw
