// Norm weights that differ from the reference's by exactly 1. Gemma and Qwen3-Next store the
// multiplier minus 1; a converter between families forgot the 1 or applied it twice.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/values/added_tensor.h"
#include "core/facts/values/value_reader.h"
#include "core/rules/explained.h"
#include "core/rules/reference/content_rules.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr std::uint64_t kMaxNormBytes = std::uint64_t{1} << 20;
constexpr std::size_t kMinNorms = 2;  // a single one may be chance

std::optional<std::vector<float>> norm_of(const Checkpoint& c, TensorId tensor) {
  auto values = read_tensor(c, tensor, kMaxNormBytes);
  if (!values || values->uncovered != 0 || !has_values(values->dtype)) return std::nullopt;
  return to_floats(values->dtype, values->bytes);
}

// here - there, if it is 1 or -1 for every element, within bfloat16's precision of 8 bits.
std::optional<int> shift_of(const std::vector<float>& here, const std::vector<float>& there) {
  constexpr float kRounding = 1.0F / 64;
  if (here.size() != there.size() || here.size() < 4) return std::nullopt;
  const int shift = here[0] > there[0] ? 1 : -1;
  for (std::size_t i = 0; i < here.size(); ++i) {
    const float largest = std::max({1.0F, std::fabs(here[i]), std::fabs(there[i])});
    const float left = std::fabs(here[i] - there[i] - static_cast<float>(shift));
    if (!(left <= kRounding * largest)) return std::nullopt;
  }
  return shift;
}

// Adds the shift if one tensor's elements are the rounded sums of the other's and a constant.
void add_shift(const Checkpoint& c, TensorId tensor, const Checkpoint& reference, TensorId other,
               std::vector<FoundShift>& shifts) {
  const auto here = read_tensor(c, tensor, kMaxNormBytes);
  const auto there = read_tensor(reference, other, kMaxNormBytes);
  if (!here || !there || here->dtype != there->dtype || !is_addition_supported(here->dtype)) return;
  if (const auto shift = find_constant_shift(here->dtype, here->bytes, there->bytes))
    shifts.push_back(*shift);
}

void find_shifted_norms(const Facts& facts, std::vector<Finding>& findings) {
  if (facts.reference == nullptr || facts.headers.empty()) return;
  const Checkpoint& c = facts.checkpoint;
  const auto differing = explained_by(findings, kDiffersFromReference.id);
  Finding finding{.rule = std::string(kNormsShifted.id)};
  int shift = 0;
  std::vector<FoundShift> shifts;
  for (TensorId tensor : each_tensor(facts)) {
    const auto& other = facts.counterparts[index_of(tensor)];
    if (!other || c.shape(tensor).size() != 1 || !differing.contains(c.fqn(tensor))) continue;
    const auto here = norm_of(c, tensor);
    const auto there = here ? norm_of(*facts.reference, *other) : std::nullopt;
    const auto one = there ? shift_of(*here, *there) : std::nullopt;
    if (!one || (shift != 0 && *one != shift)) continue;
    shift = *one;
    add_shift(c, tensor, *facts.reference, *other, shifts);
    finding.subjects.emplace_back(c.fqn(tensor));
  }
  if (finding.subjects.size() < kMinNorms) return;
  finding.cause = fmt::format(
      "{} are the reference's with 1 {} in every element ({}). Gemma's norms multiply by 1 + "
      "weight, those of most others by weight: a converter between the two {}. Shapes are equal, "
      "so it loads without an error.",
      plural(finding.subjects.size(), "vector"), shift > 0 ? "added" : "taken off",
      finding.subjects.front(), shift > 0 ? "added the 1 once too often" : "left the 1 out");
  finding.evidence = {{"shift", std::int64_t{shift}}, {"count", count_of(finding.subjects.size())}};
  set_remedy_of_adding(shifts, finding);
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kNormsShifted = {
    .id = "norms-shifted",
    .depth = Depth::kHeaders,
    .title = "Norm weights are shifted by 1",
    .teaches =
        "A norm multiplies by its weight. Gemma's multiplies by 1 + weight, so its stored weights "
        "are 1 lower. A converter between families must add or subtract the 1; if it forgets that, "
        "or does it twice, the model loads but outputs garbage. Compared with a good copy of the "
        "same step (--against), every element of two norms or more is 1 higher, or 1 lower.",
    .lesson =
        {.drawing = R"(
  reference   norm.weight   0.021  -0.113   0.250
  saved       norm.weight   1.021   0.887   1.250     1 was added
)",
         .remedy =
             "`shardwright repair` subtracts or adds 1 if every element shows it. For all norms of "
             "a checkpoint open PATH/@norms:-1 (subtracts 1) or PATH/@norms:+1 (adds 1)."},
    .run = find_shifted_norms,
};

}  // namespace shw
