#include "core/verbs/mapped_reference.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/maps/built_in_maps.h"
#include "core/maps/repairs_through_map.h"
#include "core/rules/consequence.h"
#include "core/rules/reference/content_rules.h"
#include "core/rules/rules.h"
#include "core/transform/target_view.h"
#include "core/verbs/names/renumbered_experts.h"

namespace shw::verbs {
namespace {

// Limit up to which values are compared without --data, because both checkpoints are read
// completely.
constexpr std::uint64_t kMaxComparedUnasked = std::uint64_t{1} << 30;

using Kind = MappedDifference::Kind;

std::string comparison_method_text(const MappedComparison& comparison) {
  if (!comparison.program.empty())
    return fmt::format(
        "Both use the layout of {}, and were compared in that of {}, with the map {}",
        comparison.program, comparison.to, comparison.map);
  return fmt::format("Both were compared with the map {}", comparison.map);
}

// Adds one finding per mistake, with all affected tensors.
void add_mistakes(const MappedComparison& comparison, MappedVerdict& out) {
  std::map<std::string, Finding> by_cause;
  std::vector<std::string> order;
  for (const MappedDifference& difference : comparison.differences) {
    if (!difference.is_mistake() && difference.kind != Kind::kShape) continue;
    (difference.kind == Kind::kMistake ? out.named : out.unnamed) += difference.subjects.size();
    auto [found, is_new] = by_cause.try_emplace(difference.cause);
    if (is_new) order.push_back(difference.cause);
    auto& subjects = found->second.subjects;
    subjects.insert(subjects.end(), difference.subjects.begin(), difference.subjects.end());
  }
  for (const std::string& cause : order) {
    Finding finding = std::move(by_cause[cause]);
    finding.rule = kConvertedWrongly.id;
    finding.cause =
        fmt::format("{}, in the layout of {}: {}. {}; {} of {} tensors are equal bit for bit.",
                    short_list_text(finding.subjects, 2), comparison.to, cause,
                    comparison_method_text(comparison), comparison.equal, comparison.compared);
    finding.evidence = {{"mistake", cause},
                        {"map", comparison.map},
                        {"count", static_cast<std::int64_t>(finding.subjects.size())},
                        {"equal", static_cast<std::int64_t>(comparison.equal)},
                        {"compared", static_cast<std::int64_t>(comparison.compared)}};
    out.findings.push_back(std::move(finding));
  }
}

std::vector<std::string> subjects_of(const MappedComparison& comparison, Kind kind) {
  std::vector<std::string> out;
  for (const MappedDifference& one : comparison.differences) {
    if (one.kind == kind) out.insert(out.end(), one.subjects.begin(), one.subjects.end());
  }
  return out;
}

std::vector<std::string> names_of_unmatched(const std::vector<UnmatchedMappedTensor>& alone) {
  std::vector<std::string> out;
  for (const UnmatchedMappedTensor& one : alone) out.push_back(one.fqn);
  return out;
}

void add_alone(const std::vector<UnmatchedMappedTensor>& alone, bool is_missing,
               const MappedComparison& comparison, std::vector<Finding>& findings) {
  if (alone.empty()) return;
  Finding finding{.rule = std::string(kConvertedWrongly.id), .subjects = names_of_unmatched(alone)};
  // A checkpoint may have more tensors than the model needs.
  finding.severity = is_missing ? Severity::kError : Severity::kInfo;
  finding.cause =
      is_missing
          ? fmt::format("{} {} missing, though the reference has the weights ({}). {}.",
                        short_list_text(finding.subjects, 3),
                        finding.subjects.size() == 1 ? "is" : "are",
                        short_list_text(alone.front().here, 2), comparison_method_text(comparison))
          : fmt::format(
                "{} {} no counterpart in the reference. {}.", short_list_text(finding.subjects, 3),
                finding.subjects.size() == 1 ? "has" : "have", comparison_method_text(comparison));
  finding.evidence = {{is_missing ? "missing" : "more", count_of(finding.subjects.size())}};
  findings.push_back(std::move(finding));
}

// Training changes every tensor that is not frozen. So if only a few differ, other layers were
// frozen, or the tensors were changed after the save.
void add_values(const MappedComparison& comparison, std::vector<Finding>& findings) {
  const auto subjects = subjects_of(comparison, Kind::kValues);
  if (subjects.empty()) return;
  std::uint64_t differing = 0;
  const MappedDifference* first = nullptr;
  for (const MappedDifference& one : comparison.differences) {
    if (one.kind != Kind::kValues) continue;
    ++differing;
    if (first == nullptr) first = &one;
  }
  const bool is_anomalous = comparison.equal > differing;
  Finding finding{.rule = std::string(kConvertedWrongly.id),
                  .severity = is_anomalous ? Severity::kWarning : Severity::kInfo,
                  .subjects = subjects};
  finding.cause = fmt::format(
      "{}: {}. {}; {} of {} tensors are equal bit for bit. {}", short_list_text(subjects, 2),
      first->cause, comparison_method_text(comparison), comparison.equal, comparison.compared,
      is_anomalous ? "Either only these layers were trained (all others frozen), or these were "
                     "changed or damaged."
                   : "The reference holds different weights, or another step.");
  finding.evidence = {{"map", comparison.map},
                      {"count", count_of(subjects.size())},
                      {"equal", static_cast<std::int64_t>(comparison.equal)},
                      {"compared", static_cast<std::int64_t>(comparison.compared)}};
  findings.push_back(std::move(finding));
}

void add_dtype_findings(const MappedComparison& comparison, std::vector<Finding>& findings) {
  for (const MappedDifference& one : comparison.differences) {
    if (one.kind != Kind::kDtype) continue;
    Finding finding{.rule = std::string(kConvertedWrongly.id),
                    .severity = Severity::kInfo,
                    .subjects = subjects_of(comparison, Kind::kDtype)};
    finding.cause = fmt::format("{}: {}.", short_list_text(finding.subjects, 2), one.cause);
    findings.push_back(std::move(finding));
    return;
  }
}

TensorSide side_of(const Checkpoint& checkpoint, const std::string& fqn) {
  const auto tensor = checkpoint.find(fqn);
  if (!tensor) return {};
  TensorSide side{checkpoint.dtype(*tensor), copy_of(checkpoint.shape(*tensor))};
  side.tiles = static_cast<std::uint32_t>(checkpoint.chunks(*tensor).size());
  return side;
}

DifferenceKind kind_of(const MappedDifference& difference) {
  switch (difference.kind) {
    case Kind::kShape:
      return DifferenceKind::kReshaped;
    case Kind::kDtype:
      return DifferenceKind::kDtype;
    case Kind::kDamaged:
      return DifferenceKind::kUndecided;
    case Kind::kMistake:
    case Kind::kOrder:
    case Kind::kValues:
      break;
  }
  return DifferenceKind::kValues;
}

void add_compared(const MappedDifference& difference, const Checkpoint& b,
                  CheckpointDifference& out) {
  for (const std::string& fqn : difference.subjects) {
    TensorDifference one{fqn, kind_of(difference)};
    one.b = side_of(b, fqn);
    one.a = one.b;  // the tensor of A has other names and another layout
    one.why = {difference.cause};
    out.tensors.push_back(std::move(one));
  }
}

void sort_by_kind(std::vector<TensorDifference>& tensors) {
  std::stable_sort(
      tensors.begin(), tensors.end(),
      [](const TensorDifference& x, const TensorDifference& y) { return x.kind < y.kind; });
}

CheckpointDifference difference_of(const MappedComparison& comparison, const Checkpoint& a,
                                   const Checkpoint& b) {
  CheckpointDifference out;
  out.data = comparison.reads_values;
  out.tensors_a = a.tensor_count();
  out.tensors_b = b.tensor_count();
  out.is_mapped = true;
  out.in_both = comparison.in_both;
  out.compared = comparison.compared;
  out.same = comparison.equal;
  for (const MappedDifference& one : comparison.differences) add_compared(one, b, out);
  std::set<std::string> missing;
  for (const UnmatchedMappedTensor& alone : comparison.missing) {
    for (const std::string& fqn : alone.here) {
      if (!missing.insert(fqn).second) continue;
      out.tensors.push_back({fqn, DifferenceKind::kMissing});
      out.tensors.back().a = side_of(a, fqn);
    }
  }
  for (const UnmatchedMappedTensor& alone : comparison.more) {
    for (const std::string& fqn : alone.here) {
      out.tensors.push_back({fqn, DifferenceKind::kAdded});
      out.tensors.back().b = side_of(b, fqn);
    }
  }
  sort_by_kind(out.tensors);
  for (const std::string& fqn : comparison.unread)
    out.unjudged.push_back({"values of " + fqn, "tensors of less than 1 GiB"});
  if (!comparison.reads_values) out.unjudged.push_back({"values", "--data"});
  if (!comparison.incomplete.empty())
    out.unjudged.push_back({fmt::format("{} of which other layers or experts are missing ({})",
                                        plural(comparison.incomplete.size(), "tensor"),
                                        short_list_text(comparison.incomplete)),
                            "a checkpoint that has all of them"});
  if (!comparison.without_row.empty())
    out.unjudged.push_back({plural(comparison.without_row.size(), "tensor") + " without a row in " +
                                "the map (" + short_list_text(comparison.without_row) + ")",
                            "a map that has such a row"});
  if (!comparison.left_out.empty())
    out.unjudged.push_back({plural(comparison.left_out.size(), "tensor") +
                                " that are not weights, such as optimizer states",
                            "two checkpoints of one program"});
  const bool is_different = std::any_of(
      out.tensors.begin(), out.tensors.end(),
      [](const TensorDifference& one) { return one.kind != DifferenceKind::kUndecided; });
  out.verdict = is_different           ? EqualityVerdict::kDifferent
                : comparison.is_same() ? EqualityVerdict::kSame
                                       : EqualityVerdict::kUndecided;
  out.doubts.push_back(
      fmt::format("The two use different names and layouts. They were compared with the map {}, "
                  "and tensors are counted in the layout of {}.",
                  comparison.map, comparison.to));
  return out;
}

}  // namespace

ModelFacts model_facts_of_both(const Checkpoint& a, const Checkpoint& b) {
  ModelFacts facts = facts_in_folder(a), others = facts_in_folder(b);
  facts.config.merge(others.config);
  facts.args.merge(others.args);
  if (facts.model_type.empty()) facts.model_type = std::move(others.model_type);
  return facts;
}

namespace {

// Map and model sizes for a pair of checkpoints, from --map, --set and --config.
struct RequestedMap {
  ModelFacts facts;
  std::optional<ModelMap> map;
};

Result<RequestedMap> requested_map(const Checkpoint& a, const Checkpoint& b,
                                   const MapOptions& mapping) {
  RequestedMap out{model_facts_of_both(a, b), std::nullopt};
  SHW_CHECK(add_map_options(mapping, out.facts));
  if (!mapping.map.empty()) {
    SHW_TRY(out.map, map_named(mapping.map));
  }
  return out;
}

// True if values are compared: always with --data, never at metadata depth, otherwise if both
// checkpoints are small.
bool must_compare_values(std::optional<Depth> depth, const Checkpoint& a, const Checkpoint& b) {
  if (depth == Depth::kData || depth == Depth::kMetadata) return depth == Depth::kData;
  return a.tensor_bytes() <= kMaxComparedUnasked &&
         b.tensor_bytes() <= kMaxComparedUnasked - a.tensor_bytes();
}

MappedVerdict unjudged_verdict(const std::string& why) {
  MappedVerdict out;
  out.unjudged.push_back({"the comparison with the other program's reference: " + why,
                          "a comparable reference (--against)"});
  return out;
}

std::vector<Unjudged> unjudged_parts_of(const MappedComparison& comparison) {
  std::vector<Unjudged> out;
  if (!comparison.reads_values)
    out.push_back({"values and row order compared with the reference", "--data"});
  if (!comparison.unread.empty())
    out.push_back({"values of " + short_list_text(comparison.unread, 2) + " next to the reference",
                   "tensors of less than 1 GiB"});
  if (!comparison.incomplete.empty())
    out.push_back({fmt::format("values of {} ({}), of which other layers or experts are missing",
                               plural(comparison.incomplete.size(), "tensor"),
                               short_list_text(comparison.incomplete, 2)),
                   "a checkpoint that has all of them"});
  if (!comparison.without_row.empty())
    out.push_back({plural(comparison.without_row.size(), "tensor") + " without a row in the map (" +
                       short_list_text(comparison.without_row) + ")",
                   "a map that has such a row"});
  if (const auto damaged = subjects_of(comparison, Kind::kDamaged); !damaged.empty())
    out.push_back({"values of " + short_list_text(damaged, 2) + " next to the reference",
                   "both of them whole"});
  return out;
}

std::vector<FoundShift> shifts_of_subjects(const Checkpoint& checkpoint,
                                           const std::map<TensorId, FoundShift>& shifts,
                                           const Finding& finding) {
  std::vector<FoundShift> out;
  for (const std::string& subject : finding.subjects) {
    const auto tensor = checkpoint.find(subject);
    const auto found = tensor ? shifts.find(*tensor) : shifts.end();
    if (found != shifts.end()) out.push_back(found->second);
  }
  return out;
}

// Adds every possible repair to the finding that names its tensor.
void add_repairs(const Checkpoint& checkpoint, const RepairsThroughMap& known_repairs,
                 std::vector<Finding>& findings) {
  const std::vector<Diagnosis>& repairs = known_repairs.diagnoses;
  for (Finding& finding : findings) {
    if (finding.severity != Severity::kError) continue;
    set_remedy_of_adding(shifts_of_subjects(checkpoint, known_repairs.shifts, finding), finding);
    if (finding.remedy) continue;
    std::size_t known = 0;
    for (const std::string& subject : finding.subjects) {
      const auto tensor = checkpoint.find(subject);
      const auto found = std::find_if(repairs.begin(), repairs.end(), [&](const Diagnosis& one) {
        return tensor && tensor_of(one) == *tensor;
      });
      if (found == repairs.end()) continue;
      ++known;
      finding.diagnoses.push_back(*found);
    }
    if (known == 0) continue;
    const std::size_t others = finding.subjects.size() - known;
    finding.remedy = Remedy{
        "retile", true,
        fmt::format("Move the elements of {} to the positions that the reference's map gives: all "
                    "of them are there, and no value changes{}",
                    plural(known, "tensor"),
                    others == 0
                        ? std::string()
                        : fmt::format(". {} {} unchanged: the right elements are not in this "
                                      "checkpoint, or are larger than 1 GiB",
                                      plural(others, "tensor"), others == 1 ? "stays" : "stay"))};
  }
}

// If experts are numbered from 1, number 0 is missing in every layer. Compares again with numbers
// from 0; nullopt if that does not make both equal.
std::optional<MappedVerdict> compare_with_renumbered_experts(
    const std::shared_ptr<const Checkpoint>& checkpoint,
    const std::shared_ptr<const Checkpoint>& reference, const MappedOptions& options,
    const ModelFacts& facts, Progress* progress) {
  auto from_one = experts_numbered_from_one(*checkpoint);
  if (!from_one) return std::nullopt;
  auto state = apply_steps(target_state_of(checkpoint), from_one->steps, progress);
  if (!state) return std::nullopt;
  const auto view = target_view(std::make_shared<const TargetState>(std::move(*state)), progress);
  if (!view) return std::nullopt;
  const auto compared = compare_mapped(*view, reference, options, facts, progress);
  if (!compared || !*compared) return std::nullopt;
  const MappedComparison& comparison = **compared;
  if (!comparison.differences.empty() || !comparison.missing.empty() || comparison.equal == 0)
    return std::nullopt;
  Finding finding{.rule = std::string(kConvertedWrongly.id)};
  for (const Diagnosis& diagnosis : from_one->renames)
    finding.subjects.emplace_back(checkpoint->fqn(tensor_of(diagnosis)));
  const std::string cause = "experts are numbered from 1, but every program counts from 0";
  finding.cause =
      fmt::format("{}: {}. {}; with one number less {} of {} tensors are equal bit for bit.",
                  short_list_text(finding.subjects, 2), cause, comparison_method_text(comparison),
                  comparison.equal, comparison.compared);
  finding.evidence = {{"mistake", cause},
                      {"map", comparison.map},
                      {"count", static_cast<std::int64_t>(finding.subjects.size())}};
  finding.diagnoses = std::move(from_one->renames);
  finding.remedy = Remedy{"rename", true,
                          fmt::format("Reduce the number of {} by 1; no element moves.",
                                      plural(finding.subjects.size(), "tensor"))};
  MappedVerdict out;
  out.is_compared = true;
  out.named = finding.subjects.size();
  out.findings.push_back(std::move(finding));
  add_alone(comparison.more, false, comparison, out.findings);
  out.unjudged = unjudged_parts_of(comparison);
  return out;
}

}  // namespace

Result<std::optional<MappedVerdict>> compare_through_map(
    const std::shared_ptr<const Checkpoint>& checkpoint,
    const std::shared_ptr<const Checkpoint>& reference, const MapOptions& mapping,
    std::optional<Depth> depth, Progress* progress, const std::string& program) {
  SHW_TRY(const RequestedMap asked, requested_map(*checkpoint, *reference, mapping));
  const ModelFacts& facts = asked.facts;
  if (!asked.map && !needs_map(*checkpoint, *reference, facts))
    return std::optional<MappedVerdict>();
  MappedOptions options;
  if (asked.map) options.map = &*asked.map;
  options.reads_values = must_compare_values(depth, *checkpoint, *reference);
  auto compared = compare_mapped(checkpoint, reference, options, facts, progress);
  const bool is_mistaken = !compared && asked.map && compared.error().kind == ErrorKind::kUsage;
  if (!compared && (is_mistaken || is_cancelled(progress)))
    return tl::unexpected<Error>(compared.error());
  if (!compared) {
    const Error& error = compared.error();
    return std::optional(unjudged_verdict(
        (error.place.file.empty() ? "" : error.place.file + ": ") + error.message));
  }
  if (!*compared) return std::optional(unjudged_verdict("no map joins the two"));
  MappedComparison& comparison = **compared;
  comparison.program = program;
  if (!comparison.missing.empty() && comparison.reads_values) {
    auto renumbered =
        compare_with_renumbered_experts(checkpoint, reference, options, facts, progress);
    if (renumbered) return renumbered;
  }
  MappedVerdict out;
  out.is_compared = true;
  out.is_same = comparison.is_same();
  out.has_unread = !subjects_of(comparison, Kind::kDamaged).empty();
  add_mistakes(comparison, out);
  if (!out.findings.empty() && comparison.reads_values) {
    SHW_TRY(const RepairsThroughMap repairs,
            repairs_through_map(checkpoint, reference, comparison, options, facts, progress));
    add_repairs(*checkpoint, repairs, out.findings);
  }
  add_alone(comparison.missing, true, comparison, out.findings);
  add_values(comparison, out.findings);
  add_dtype_findings(comparison, out.findings);
  add_alone(comparison.more, false, comparison, out.findings);
  out.unjudged = unjudged_parts_of(comparison);
  return std::optional(std::move(out));
}

void add_findings(const Checkpoint& checkpoint, std::vector<Finding> findings,
                  CheckReport& report) {
  for (Finding& finding : findings) {
    finding.consequence = consequence_of(finding, checkpoint);
    if (finding.severity > Severity::kInfo) report.verdict = Verdict::kFindings;
  }
  report.findings.insert(report.findings.begin(), std::make_move_iterator(findings.begin()),
                         std::make_move_iterator(findings.end()));
  std::stable_sort(report.findings.begin(), report.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
}

void add_mapped_verdict(const Checkpoint& checkpoint, MappedVerdict judged, CheckReport& report) {
  add_findings(checkpoint, std::move(judged.findings), report);
  // The given reference could not be compared, so the absence of other findings is not a clean
  // result.
  if (report.verdict == Verdict::kClean && (!judged.is_compared || judged.has_unread))
    report.verdict = Verdict::kUndecided;
  // Removes open questions that the comparison answered. Questions for a copy of the same step
  // count as answered only if the reference is equal.
  if (judged.is_compared) {
    std::erase_if(report.unjudged, [&](const Unjudged& one) {
      const bool asks_for_copy = one.needs.find("of the same step") != std::string::npos;
      return one.needs.find("--against") != std::string::npos && (judged.is_same || !asks_for_copy);
    });
    report.unjudged.push_back({"entries that are not weights, such as optimizer states",
                               "a reference written by the same program (--against)"});
  }
  report.unjudged.insert(report.unjudged.end(), std::make_move_iterator(judged.unjudged.begin()),
                         std::make_move_iterator(judged.unjudged.end()));
}

Result<std::optional<CheckpointDifference>> difference_through_map(
    const std::shared_ptr<const Checkpoint>& a, const std::shared_ptr<const Checkpoint>& b,
    const MapOptions& mapping, bool reads_values, Progress* progress) {
  SHW_TRY(const RequestedMap asked, requested_map(*a, *b, mapping));
  if (!asked.map && !needs_map(*a, *b, asked.facts)) return std::optional<CheckpointDifference>();
  MappedOptions options;
  if (asked.map) options.map = &*asked.map;
  options.reads_values = reads_values;
  SHW_TRY(const auto comparison, compare_mapped(b, a, options, asked.facts, progress));
  if (!comparison) return std::optional<CheckpointDifference>();
  return std::optional(difference_of(*comparison, *a, *b));
}

}  // namespace shw::verbs
