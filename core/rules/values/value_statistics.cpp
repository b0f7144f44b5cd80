// Values that no intact tensor contains.
#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/names/quant_families.h"
#include "core/facts/values/value_anomaly.h"
#include "core/rules/rules.h"
#include "core/tensor/float_counts.h"

namespace shw {
namespace {

struct ValueGroup {
  std::vector<std::string> subjects, how;
  std::int64_t elements = 0;
  void add(std::string_view fqn, std::int64_t count, std::int64_t of) {
    subjects.emplace_back(fqn);
    how.push_back(std::string(fqn) + ": " + human_count(static_cast<std::uint64_t>(count)) +
                  " of " + human_count(static_cast<std::uint64_t>(of)));
    elements += count;
  }
};

void report_values(ValueGroup group, Severity severity, std::string what, std::string why,
                   std::int64_t left_out, std::vector<Finding>& findings) {
  if (group.subjects.empty()) return;
  Finding finding{.rule = "value-statistics", .severity = severity};
  finding.cause = plural(group.subjects.size(), "tensor") +
                  (group.subjects.size() == 1 ? " holds " : " hold ") + what + " (" +
                  short_list_text(group.how) + "): " + why;
  finding.evidence = {{"tensors", capped(group.how)},
                      {"tensor_count", count_of(group.subjects.size())},
                      {"elements", group.elements},
                      {"tensors_left_out", left_out}};
  finding.subjects = std::move(group.subjects);
  findings.push_back(std::move(finding));
}

// True if a record's checksum says already that its bytes changed.
bool is_known_as_damaged(const Facts& facts, TensorId tensor) {
  for (ChunkId chunk : facts.checkpoint.chunks(tensor)) {
    const auto& check = facts.data[index_of(chunk)];
    if (check && check->crc == DataCheck::Crc::kDiffers) return true;
  }
  return false;
}

// True if as many elements as some rows have are NaN in a matrix with a row for each token.
bool can_be_whole_rows_of_tokens(const Checkpoint& c, TensorId tensor, std::int64_t nan) {
  const ExtentsView shape = c.shape(tensor);
  const std::string_view fqn = c.fqn(tensor);
  const bool is_of_tokens =
      fqn.ends_with("lm_head.weight") || fqn.ends_with("wte.weight") ||
      fqn.ends_with("token_embd.weight") || fqn.ends_with("output.weight") ||
      (fqn.find("embed") != std::string_view::npos && fqn.ends_with(".weight"));
  return is_of_tokens && shape.size() == 2 && shape[1] >= 16 && nan % shape[1] == 0 &&
         2 * nan < shape[0] * shape[1];
}

void find_anomalous_values(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  // Smaller tensors may be scales that were never set.
  constexpr std::int64_t kEnough = 64;
  ValueGroup all_nan, nan, nan_rows, infinite, huge, some, unwritten, denormal;
  std::int64_t left_out = 0;
  for (TensorId tensor : each_tensor(facts)) {
    // Skips tensors with overlaps or gaps.
    Dtype dtype = c.dtype(tensor);
    if (!can_be_counted(dtype) || facts.tilings[index_of(tensor)].tiling != Tiling::kExact ||
        stores_codes_as_floats(c, tensor))
      continue;
    auto counts = float_counts(facts, tensor);
    if (!counts) ++left_out;
    if (!counts || counts->count == 0) continue;
    const FloatCounts& seen = *counts;
    std::string_view fqn = c.fqn(tensor);
    const auto anomaly = value_anomaly(fqn, static_cast<std::uint64_t>(seen.count),
                                       static_cast<std::uint64_t>(seen.nan),
                                       static_cast<std::uint64_t>(seen.infinite));
    if (anomaly == ValueAnomaly::kAllNan) all_nan.add(fqn, seen.nan, seen.count);
    if (anomaly == ValueAnomaly::kNan)
      (can_be_whole_rows_of_tokens(c, tensor, seen.nan) ? nan_rows : nan)
          .add(fqn, seen.nan, seen.count);
    if (anomaly == ValueAnomaly::kInfinite) infinite.add(fqn, seen.infinite, seen.count);
    if (seen.huge != 0 && are_huge_values_wrong(fqn) && !is_known_as_damaged(facts, tensor))
      huge.add(fqn, seen.huge, seen.count);
    if (anomaly == ValueAnomaly::kPossiblyIntended)
      some.add(fqn, seen.nan + seen.infinite, seen.count);
    // Small gradients have denormal squares, and half precision has denormal weights: only other
    // weights are checked.
    if (dtype != Dtype::kFloat16 && fqn.find("exp_avg") == std::string_view::npos &&
        seen.count - seen.zero >= kEnough && seen.denormal * 2 > seen.count - seen.zero) {
      const bool is_all = seen.denormal + seen.zero == seen.count && c.shape(tensor).size() >= 2;
      (is_all && is_weight_or_moment(fqn) ? unwritten : denormal)
          .add(fqn, seen.denormal, seen.count);
    }
  }
  report_values(std::move(all_nan), Severity::kWarning, "nothing but NaN",
                "most likely they were invalid before the save, or never set.", left_out, findings);
  report_values(
      std::move(nan), Severity::kWarning, "NaN",
      "most likely training went wrong before the save; every output that uses them is NaN.",
      left_out, findings);
  report_values(std::move(nan_rows), Severity::kWarning, "NaN, as many as some whole rows have",
                "these may be rows of tokens that nothing filled, as a merge of two tokenizers "
                "leaves them (mergekit #73), or training went wrong before the save. Every output "
                "that uses them is NaN. Rows of tokens that no text uses can be set to the mean of "
                "the others; otherwise use the weights from before the merge.",
                left_out, findings);
  report_values(std::move(infinite), Severity::kWarning, "infinity",
                "most likely training went wrong before the save, or a cast to lower precision "
                "overflowed; every output that uses them is infinite or NaN.",
                left_out, findings);
  report_values(std::move(huge), Severity::kWarning,
                "numbers far larger than any weight (8.6e9 or more; in float16 8,192)",
                "one such number suggests a flipped exponent bit, many a run that diverged; every "
                "output that uses them is useless.",
                left_out, findings);
  report_values(
      std::move(some), Severity::kInfo, "NaN or infinity",
      "training may have gone wrong before the save, or a mask is stored this way on purpose.",
      left_out, findings);
  report_values(std::move(unwritten), Severity::kWarning, "only numbers very close to zero",
                "uninitialized memory looks like this; a trained matrix does not.", left_out,
                findings);
  report_values(std::move(denormal), Severity::kInfo, "mostly numbers very close to zero",
                "memory with other contents looks like this; compare with an earlier checkpoint.",
                left_out, findings);
}

}  // namespace

const Rule kValueStatistics = {
    .id = "value-statistics",
    .depth = Depth::kData,
    .title = "A tensor holds NaN, infinity or implausible numbers",
    .teaches =
        "Every element of the float tensors is read, in the pass that verifies checksums. A tensor "
        "with only NaN is broken, and so is a weight with any NaN, infinity, or a number that no "
        "weight reaches (8.6e9; one flipped exponent bit makes it). Other NaNs and infinities may "
        "be intended (masks) or come from a run that diverged. Numbers around 1e-42 are what other "
        "memory looks like when it is read as floats. No repair can compute "
        "the right values: only an earlier checkpoint has them.",
    .lesson = {.drawing = R"(
  layers.0.weight    0.013  -0.207   0.090   0.411
  layers.1.weight      NaN     NaN     NaN     NaN     no value to repair from
)",
               .remedy =
                   "Take the tensor from an earlier checkpoint: no repair can compute its values."},
    .run = find_anomalous_values,
};

}  // namespace shw
