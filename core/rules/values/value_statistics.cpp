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

void find_anomalous_values(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  // Smaller tensors may be scales that were never set.
  constexpr std::int64_t kEnough = 64;
  ValueGroup all_nan, nan, infinite, some, unwritten, denormal;
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
    if (anomaly == ValueAnomaly::kNan) nan.add(fqn, seen.nan, seen.count);
    if (anomaly == ValueAnomaly::kInfinite) infinite.add(fqn, seen.infinite, seen.count);
    if (anomaly == ValueAnomaly::kPossiblyMeant)
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
                "they were broken before they were saved, or never set.", left_out, findings);
  report_values(std::move(nan), Severity::kWarning, "NaN",
                "training went wrong before the save, and every output that they reach is NaN.",
                left_out, findings);
  report_values(
      std::move(infinite), Severity::kWarning, "infinity",
      "training went wrong before the save, or a cast to fewer bits overflowed, and every "
      "output that they reach is infinite or NaN.",
      left_out, findings);
  report_values(std::move(some), Severity::kInfo, "NaN or infinity",
                "training went wrong before the save, or a mask was saved as such.", left_out,
                findings);
  report_values(
      std::move(unwritten), Severity::kWarning, "numbers next to zero alone",
      "memory that was allocated and never written looks like this; a trained matrix does not.",
      left_out, findings);
  report_values(std::move(denormal), Severity::kInfo, "mostly numbers next to zero",
                "memory that was not a weight looks like this; compare with an earlier checkpoint.",
                left_out, findings);
}

}  // namespace

const Rule kValueStatistics = {
    .id = "value-statistics",
    .depth = Depth::kData,
    .title = "Numbers that no healthy tensor is made of",
    .teaches =
        "Every element of the float tensors is read, in the pass that verifies checksums. A tensor "
        "of nothing but NaN is broken, and so is a weight with any, or with infinity; other NaNs "
        "and infinities may be meant (masks) or the end of a run that diverged; numbers around "
        "1e-42 are what other memory looks like when it is read as floats. The bytes are what was "
        "saved: no repair brings back what was never there, an earlier checkpoint does.",
    .lesson = {.drawing = R"(
  layers.0.weight    0.013  -0.207   0.090   0.411
  layers.1.weight      NaN     NaN     NaN     NaN     broken before the save
)",
               .remedy =
                   "Take the tensor from an earlier checkpoint: the bytes are what was saved."},
    .run = find_anomalous_values,
};

}  // namespace shw
