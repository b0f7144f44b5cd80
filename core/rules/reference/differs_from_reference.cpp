// Values that differ from the reference. At another training step that is progress. Copies of one
// step agree in nearly all tensors: a difference is damage or a change on either side.
#include "core/rules/reference/differs_from_reference.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "core/base/encoder.h"
#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/reference/reference_bytes.h"
#include "core/facts/values/computed_tensors.h"
#include "core/facts/values/equal_elements.h"
#include "core/model/state_names.h"
#include "core/rules/rules.h"
#include "core/tensor/cast.h"
#include "core/tiles/coverage.h"

namespace shw {
namespace {

std::vector<std::string> all_differing_names(const DifferingTensors& differing) {
  std::vector<std::string> all;
  for (const auto* group : {&differing.other, &differing.ambiguous, &differing.few_values})
    all.insert(all.end(), group->begin(), group->end());
  return all;
}

// Training adapters on frozen weights changes at least a third of the tensors per step. Here at
// most one in four may differ, or a single one if two agree.
bool is_same_training_step(const DifferingTensors& differing, std::int64_t differ) {
  const std::int64_t agree = differing.equal + differing.alike;
  return differ == 1 ? agree >= 2 : agree >= 3 * differ;
}

constexpr std::string_view kTrained = "trained", kRounded = "rounded";

// True if the reference computes the tensor, as a merge of an adapter does: then it is what this
// checkpoint should hold, and no step of a training.
bool is_computed_by_reference(const Facts& facts, const std::string& fqn) {
  const auto tensor = facts.checkpoint.find(fqn);
  const auto other = tensor ? comparable_counterpart(facts, *tensor) : std::nullopt;
  return other && is_rounded_in_computing(*facts.reference, *other);
}

// A few tensors may be trained next to frozen weights: then all their chunks changed
// slightly. Damage leaves chunks unchanged or makes unrelated values. Empty if
// unreadable.
std::string encode_damage_evidence(const Facts& facts, const std::string& fqn) {
  const Checkpoint& c = facts.checkpoint;
  const auto tensor = c.find(fqn);
  const auto other = tensor ? comparable_counterpart(facts, *tensor) : std::nullopt;
  if (!other) return {};
  auto one = pieces_of(c, *tensor, Dtype::kUnknown, facts.progress);
  auto two =
      one ? pieces_of(*facts.reference, *other, Dtype::kUnknown, facts.progress) : std::nullopt;
  DifferingElements seen;
  bool is_trained = two.has_value();
  for (ChunkId chunk : c.chunks(*tensor)) {
    const auto part = two ? differing_elements(*one, *two, box_of(c, chunk)) : std::nullopt;
    if (!part) return {};
    seen.add(*part);
    is_trained = is_trained && (part->elements == 0 || 4 * part->differing > part->elements) &&
                 (part->elements == 0 || part->is_near());
  }
  if (seen.differing == 0) return {};
  const bool is_computed = is_rounded_in_computing(*facts.reference, *other);
  if (is_computed && seen.is_rounding()) return std::string(kRounded);
  if (is_trained && !is_computed) return std::string(kTrained);
  return fmt::format("{} of {} elements of {} differ, the first at {}",
                     human_count(static_cast<std::uint64_t>(seen.differing)),
                     human_count(static_cast<std::uint64_t>(seen.elements)), fqn,
                     to_text(seen.first));
}

// In the order of `fqns`, divided among the ranks of a team.
Result<std::vector<std::string>> inspect_each(const Facts& facts,
                                              const std::vector<std::string>& fqns) {
  std::vector<ComparisonCost> costs;
  for (const std::string& fqn : fqns) {
    const auto tensor = facts.checkpoint.find(fqn);
    costs.push_back(
        {tensor ? 2 * bytes_of_elements(facts.checkpoint, *tensor) : 0, 2 * kHeldOfSide});
  }
  auto find = [&](std::size_t i) -> Result<std::string> {
    return encode_damage_evidence(facts, fqns[i]);
  };
  return map_comparisons(facts, "count what differs from the reference", costs, find);
}

// "unrelated" for a weight whose cosine with the reference is below 0.1, otherwise empty.
// Fine-tuning keeps a matrix nearly parallel; a new random matrix is at right angles.
Result<std::string> encode_if_unrelated(const Facts& facts, const std::string& fqn) {
  constexpr std::int64_t kMinElements = 1024, kMaxElements = 1 << 18;
  constexpr double kMaxCosine = 0.1;
  const Checkpoint& c = facts.checkpoint;
  const auto tensor = c.find(fqn);
  const auto other = tensor ? comparable_counterpart(facts, *tensor) : std::nullopt;
  if (!other || parse_state_fqn(fqn) || !is_plain_float(c.dtype(*tensor))) return std::string();
  Box box = whole(copy_of(c.shape(*tensor)));
  for (std::int64_t& extent : box.sizes) {
    const std::int64_t all = volume(box.sizes).value_or(0);
    if (all > kMaxElements) extent = std::max<std::int64_t>(1, extent / (all / kMaxElements + 1));
  }
  if (box.sizes.size() < 2 || volume(box.sizes).value_or(0) < kMinElements) return std::string();
  const auto one = pieces_of(c, *tensor, Dtype::kUnknown, facts.progress);
  const auto two =
      one ? pieces_of(*facts.reference, *other, Dtype::kUnknown, facts.progress) : std::nullopt;
  const auto seen = two ? differing_elements(*one, *two, box) : std::nullopt;
  const bool is_unrelated = seen && seen->tensor_squares > 0 && seen->reference_squares > 0 &&
                            std::abs(seen->cosine()) < kMaxCosine;
  return std::string(is_unrelated ? "unrelated" : "");
}

// Reports weights recreated next to weights that are equal to the bit.
Status report_unrelated(const Facts& facts, const DifferingTensors& differing,
                        std::vector<std::string>& subjects, std::vector<Finding>& findings) {
  constexpr std::size_t kFewest = 4;
  if (differing.equal < 2 || subjects.size() < kFewest) return {};
  std::vector<ComparisonCost> costs(subjects.size(), {std::uint64_t{1} << 20, 2 * kHeldOfSide});
  auto find = [&](std::size_t i) { return encode_if_unrelated(facts, subjects[i]); };
  SHW_TRY(const auto told, map_comparisons(facts, "compare directions of weights", costs, find));
  Finding finding{.rule = std::string(kDiffersFromReference.id), .severity = Severity::kWarning};
  std::vector<std::string> left;
  for (std::size_t i = 0; i < told.size(); ++i)
    (told[i].empty() ? left : finding.subjects).push_back(subjects[i]);
  if (finding.subjects.size() < kFewest) return {};
  finding.cause = fmt::format(
      "{} hold values unrelated to the reference's ({}), while {} agree with it bit for bit. "
      "Training does not do that: these weights were left at random values, or belong to another "
      "model.",
      plural(finding.subjects.size(), "tensor"), short_list_text(finding.subjects),
      plural(static_cast<std::uint64_t>(differing.equal), "other tensor"));
  finding.evidence = {{"equal", differing.equal}, {"different", count_of(finding.subjects.size())}};
  findings.push_back(std::move(finding));
  subjects = std::move(left);
  return {};
}

std::string ambiguous_order_text(const DifferingTensors& differing) {
  std::string text;
  if (!differing.ambiguous.empty())
    text += " " + short_list_text(differing.ambiguous) +
            " has the reference's rows in a different order, but some rows are equal, so the order "
            "is undecided.";
  if (!differing.few_values.empty())
    text += " " + short_list_text(differing.few_values) +
            " has the reference's chunks at different positions, but with so few distinct values "
            "that it may be chance, and most other tensors differ as well.";
  return text;
}

void describe_damage(const DifferingTensors& differing, std::vector<std::string> counts,
                     bool is_computed, Finding& finding) {
  std::erase(counts, "");
  const std::int64_t agree = differing.equal + differing.alike;
  const std::string few = counts.empty() ? "" : short_list_text(counts, 2) + ". ";
  const std::string front = fmt::format(
      "{} {} values that differ from the reference ({})", plural(finding.subjects.size(), "tensor"),
      finding.subjects.size() == 1 ? "holds" : "hold", short_list_text(finding.subjects));
  finding.severity = Severity::kWarning;
  finding.cause = is_computed
                      ? fmt::format(
                            "{}, which is computed. {}The change that the reference adds to its "
                            "base is missing here, or was added to another tensor.",
                            front, few)
                      : fmt::format(
                            "{}, while {} agree with it: the reference is a copy of the same step, "
                            "so training does not explain it. {}One of the two was changed after "
                            "it was saved; the checkpoint loads without an error.",
                            front, plural(static_cast<std::uint64_t>(agree), "other tensor"), few);
  finding.evidence.emplace_back("same_step", true);
  if (!counts.empty()) finding.evidence.emplace_back("elements_that_differ", capped(counts));
}

void describe_step(Finding& finding) {
  finding.cause = plural(finding.subjects.size(), "tensor") +
                  (finding.subjects.size() == 1 ? " holds" : " hold") +
                  " bytes that differ from the reference (" + short_list_text(finding.subjects) +
                  "): so the order of their rows cannot be checked by comparing bytes.";
}

void report_unread(const DifferingTensors& differing, std::vector<Finding>& findings) {
  if (differing.unread.empty()) return;
  Finding finding{.rule = std::string(kDiffersFromReference.id), .severity = Severity::kInfo};
  const char* whose = differing.unread.size() == 1 ? "its" : "their";
  finding.cause = fmt::format(
      "{} could not be compared with the reference ({}): {} chunks here do not cover each element "
      "once, or the reference's bytes cannot be read, or have a dtype that these cannot be "
      "compared with.",
      plural(differing.unread.size(), "tensor"), short_list_text(differing.unread), whose);
  finding.evidence = {{std::string(kNotCompared), count_of(differing.unread.size())}};
  finding.subjects = differing.unread;
  findings.push_back(std::move(finding));
}

}  // namespace

Status report_differing(const Facts& facts, const DifferingTensors& differing,
                        std::vector<Finding>& findings) {
  Finding finding{.rule = std::string(kDiffersFromReference.id),
                  .severity = Severity::kInfo,
                  .subjects = all_differing_names(differing)};
  finding.evidence = {{"equal", differing.equal},
                      {"equal_in_first_4_kib_of_tiles", differing.alike},
                      {"different", count_of(differing.other.size())},
                      {"ambiguous", differing.ambiguous},
                      {"not_read", differing.not_read}};
  Finding damaged = finding;
  damaged.subjects.clear();
  const bool is_computed =
      std::any_of(finding.subjects.begin(), finding.subjects.end(),
                  [&](const std::string& fqn) { return is_computed_by_reference(facts, fqn); });
  std::vector<std::string> counts;
  if (is_computed || is_same_training_step(differing, count_of(finding.subjects.size()))) {
    SHW_TRY(const std::vector<std::string> told, inspect_each(facts, finding.subjects));
    std::vector<std::string> trained;
    for (std::size_t i = 0; i < told.size(); ++i) {
      if (told[i] == kRounded) continue;
      (told[i] == kTrained ? trained : damaged.subjects).push_back(finding.subjects[i]);
      if (told[i] != kTrained) counts.push_back(told[i]);
    }
    finding.subjects = std::move(trained);
  } else {
    SHW_CHECK(report_unrelated(facts, differing, finding.subjects, findings));
  }
  if (!damaged.subjects.empty()) {
    describe_damage(differing, std::move(counts), is_computed, damaged);
    damaged.cause += ambiguous_order_text(differing);
    findings.push_back(std::move(damaged));
  }
  if (!finding.subjects.empty()) {
    describe_step(finding);
    finding.cause += ambiguous_order_text(differing);
    findings.push_back(std::move(finding));
  }
  report_unread(differing, findings);
  return {};
}

const Rule kDiffersFromReference = {
    .id = "differs-from-reference",
    .depth = Depth::kHeaders,
    .title = "Values differ from the reference",
    .teaches =
        "Another step of the same training differs in nearly every tensor: that is not a defect, "
        "only info. In a copy of the same step nearly every tensor is equal bit for bit, and one "
        "that differs was damaged or changed on one side: a warning. At least three tensors must "
        "agree for each one that differs, and two if only one differs. --against also looks for "
        "equal blocks in a different order; between steps only rows and chunks that correlate with "
        "a different position are reported. Several matrices unrelated to the reference's, next to "
        "others that are equal bit for bit, are a warning. So is any difference beyond rounding "
        "from a computed reference (BASE/@merged=ADAPTER).",
    .lesson = {.drawing = R"(
  reference, step 8000     │ 0.125 │ -0.500 │ 0.250 │
  saved,     step 9000     │ 0.127 │ -0.498 │ 0.246 │   trained on: sound
  saved,     step 8000     │ 0.000 │  0.000 │ 0.250 │   rest equal: damaged
)",
               .remedy = "If the reference is another step, nothing to do. If it is a copy of the "
                         "same step, `shardwright diff --data` lists every element that differs; "
                         "keep the side whose file was not rewritten."},
};

}  // namespace shw
