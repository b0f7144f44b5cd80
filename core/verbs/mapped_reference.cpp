#include "core/verbs/mapped_reference.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/rules/consequence.h"
#include "core/rules/reference/content_rules.h"
#include "core/rules/rules.h"

namespace shw::verbs {
namespace {

// Values are compared without --data up to here: both are read whole.
constexpr std::uint64_t kMostComparedUnasked = std::uint64_t{1} << 30;

using Kind = MappedDifference::Kind;

std::uint64_t bytes_in(const Checkpoint& checkpoint) {
  std::uint64_t bytes = 0;
  for (TensorId tensor : checkpoint.tensors())
    bytes += static_cast<std::uint64_t>(volume(checkpoint.shape(tensor)).value_or(0)) *
             size_of(checkpoint.dtype(tensor));
  return bytes;
}

std::string how_compared(const MappedComparison& comparison) {
  return fmt::format("The reference was carried over by the map {}", comparison.map);
}

// One finding per mistake, with all tensors in which it was made.
std::vector<Finding> mistakes_in(const MappedComparison& comparison) {
  std::map<std::string, Finding> by_cause;
  std::vector<std::string> order;
  for (const MappedDifference& difference : comparison.differences) {
    if (difference.kind != Kind::kMistake && difference.kind != Kind::kShape) continue;
    auto [found, is_new] = by_cause.try_emplace(difference.cause);
    if (is_new) order.push_back(difference.cause);
    auto& subjects = found->second.subjects;
    subjects.insert(subjects.end(), difference.subjects.begin(), difference.subjects.end());
  }
  std::vector<Finding> out;
  for (const std::string& cause : order) {
    Finding finding = std::move(by_cause[cause]);
    finding.rule = kConvertedWrongly.id;
    finding.cause =
        fmt::format("{}, in the layout of {}: {}. {}; {} of {} tensors are equal to it to the bit.",
                    some_of(finding.subjects, 2), comparison.to, cause, how_compared(comparison),
                    comparison.equal, comparison.compared);
    finding.evidence = {{"mistake", cause},
                        {"map", comparison.map},
                        {"count", static_cast<std::int64_t>(finding.subjects.size())},
                        {"equal", static_cast<std::int64_t>(comparison.equal)},
                        {"compared", static_cast<std::int64_t>(comparison.compared)}};
    out.push_back(std::move(finding));
  }
  return out;
}

std::vector<std::string> subjects_of(const MappedComparison& comparison, Kind kind) {
  std::vector<std::string> out;
  for (const MappedDifference& one : comparison.differences) {
    if (one.kind == kind) out.insert(out.end(), one.subjects.begin(), one.subjects.end());
  }
  return out;
}

std::vector<std::string> names_of_alone(const std::vector<MappedAlone>& alone) {
  std::vector<std::string> out;
  for (const MappedAlone& one : alone) out.push_back(one.fqn);
  return out;
}

void add_alone(const std::vector<MappedAlone>& alone, bool is_missing,
               const MappedComparison& comparison, std::vector<Finding>& findings) {
  if (alone.empty()) return;
  Finding finding;
  finding.rule = kConvertedWrongly.id;
  finding.subjects = names_of_alone(alone);
  // A checkpoint may hold more than the model needs.
  finding.severity = is_missing ? Severity::kError : Severity::kInfo;
  finding.cause =
      is_missing
          ? fmt::format("{} {} missing: the reference has the weights ({}). {}.",
                        some_of(finding.subjects, 3), finding.subjects.size() == 1 ? "is" : "are",
                        some_of(alone.front().here, 2), how_compared(comparison))
          : fmt::format("{} {} no counterpart in the reference. {}.", some_of(finding.subjects, 3),
                        finding.subjects.size() == 1 ? "has" : "have", how_compared(comparison));
  finding.evidence = {{is_missing ? "missing" : "more", count_of(finding.subjects.size())}};
  findings.push_back(std::move(finding));
}

// Training changes every tensor: a few that differ beside many that are equal were not trained.
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
  const bool is_odd = comparison.equal > differing;
  Finding finding;
  finding.rule = kConvertedWrongly.id;
  finding.severity = is_odd ? Severity::kError : Severity::kInfo;
  finding.subjects = subjects;
  finding.cause = fmt::format("{}: {}. {}; {} of {} tensors are equal to it to the bit{}.",
                              some_of(subjects, 2), first->cause, how_compared(comparison),
                              comparison.equal, comparison.compared,
                              is_odd ? ", so that it is not another step"
                                     : ": these are other weights, or another step of them");
  finding.evidence = {{"map", comparison.map},
                      {"count", count_of(subjects.size())},
                      {"equal", static_cast<std::int64_t>(comparison.equal)},
                      {"compared", static_cast<std::int64_t>(comparison.compared)}};
  findings.push_back(std::move(finding));
}

void add_dtypes(const MappedComparison& comparison, std::vector<Finding>& findings) {
  for (const MappedDifference& one : comparison.differences) {
    if (one.kind != Kind::kDtype) continue;
    Finding finding;
    finding.rule = kConvertedWrongly.id;
    finding.severity = Severity::kInfo;
    finding.subjects = subjects_of(comparison, Kind::kDtype);
    finding.cause = fmt::format("{}: {}.", some_of(finding.subjects, 2), one.cause);
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
    one.a = one.b;
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
  out.in_both = comparison.compared;
  out.compared = comparison.compared;
  out.same = comparison.equal;
  for (const MappedDifference& one : comparison.differences) add_compared(one, b, out);
  for (const MappedAlone& alone : comparison.missing) {
    for (const std::string& fqn : alone.here) {
      out.tensors.push_back({fqn, DifferenceKind::kMissing});
      out.tensors.back().a = side_of(a, fqn);
    }
  }
  for (const MappedAlone& alone : comparison.more) {
    for (const std::string& fqn : alone.here) {
      out.tensors.push_back({fqn, DifferenceKind::kAdded});
      out.tensors.back().b = side_of(b, fqn);
    }
  }
  sort_by_kind(out.tensors);
  for (const std::string& fqn : comparison.unread)
    out.unjudged.push_back({"values of " + fqn, "less than 1 GiB for a tensor"});
  if (!comparison.reads_values) out.unjudged.push_back({"values", "--data"});
  const bool is_open = !comparison.reads_values || !comparison.unread.empty();
  out.verdict = !out.tensors.empty() ? Sameness::kDifferent
                : is_open            ? Sameness::kUndecided
                                     : Sameness::kSame;
  out.doubts.push_back(
      fmt::format("A was carried over into the names and the layout of B by the "
                  "map {}; tensors are counted as they are in {}.",
                  comparison.map, comparison.to));
  return out;
}

}  // namespace

ModelFacts facts_of_pair(const Checkpoint& a, const Checkpoint& b) {
  ModelFacts facts = facts_beside(a), others = facts_beside(b);
  facts.config.merge(others.config);
  facts.args.merge(others.args);
  if (facts.model_type.empty()) facts.model_type = std::move(others.model_type);
  return facts;
}

Result<std::optional<JudgedThroughMap>> judge_through_map(
    const std::shared_ptr<const Checkpoint>& checkpoint,
    const std::shared_ptr<const Checkpoint>& reference, std::optional<Depth> depth,
    Progress* progress) {
  const ModelFacts facts = facts_of_pair(*checkpoint, *reference);
  if (!needs_map(*checkpoint, *reference, facts)) return std::optional<JudgedThroughMap>();
  MappedOptions options;
  options.reads_values = depth
                             ? *depth != Depth::kMetadata
                             : bytes_in(*checkpoint) + bytes_in(*reference) <= kMostComparedUnasked;
  JudgedThroughMap out;
  auto compared = compare_mapped(checkpoint, reference, options, facts, progress);
  if (!compared && is_cancelled(progress)) return tl::unexpected<Error>(compared.error());
  if (!compared || !*compared) {
    out.unjudged.push_back({"what the reference expects, which has names of another program",
                            compared ? std::string("a map") : compared.error().message});
    return std::optional(std::move(out));
  }
  const MappedComparison& comparison = **compared;
  out.is_compared = true;
  out.findings = mistakes_in(comparison);
  add_alone(comparison.missing, true, comparison, out.findings);
  add_values(comparison, out.findings);
  add_dtypes(comparison, out.findings);
  add_alone(comparison.more, false, comparison, out.findings);
  if (!comparison.reads_values)
    out.unjudged.push_back({"values beside those of the reference", "--depth headers"});
  if (!comparison.unread.empty())
    out.unjudged.push_back({"values of " + some_of(comparison.unread, 2) + " beside the reference",
                            "less than 1 GiB for a tensor"});
  return std::optional(std::move(out));
}

void add_judged(const Checkpoint& checkpoint, JudgedThroughMap judged, CheckReport& report) {
  for (Finding& finding : judged.findings) {
    finding.consequence = consequence_of(finding, checkpoint);
    if (finding.severity > Severity::kInfo) report.verdict = Verdict::kFindings;
  }
  report.findings.insert(report.findings.begin(), std::make_move_iterator(judged.findings.begin()),
                         std::make_move_iterator(judged.findings.end()));
  std::stable_sort(report.findings.begin(), report.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  // What a check without a reference leaves open was answered through the map.
  if (judged.is_compared) {
    std::erase_if(report.unjudged, [](const Unjudged& one) {
      return one.needs.find("--against") != std::string::npos;
    });
    report.unjudged.push_back({"what is not a weight, such as optimizer states",
                               "--against a checkpoint of the same program"});
  }
  report.unjudged.insert(report.unjudged.end(), std::make_move_iterator(judged.unjudged.begin()),
                         std::make_move_iterator(judged.unjudged.end()));
}

Result<std::optional<CheckpointDifference>> difference_through_map(
    const std::shared_ptr<const Checkpoint>& a, const std::shared_ptr<const Checkpoint>& b,
    bool reads_values, Progress* progress) {
  const ModelFacts facts = facts_of_pair(*a, *b);
  if (!needs_map(*a, *b, facts)) return std::optional<CheckpointDifference>();
  MappedOptions options;
  options.reads_values = reads_values;
  SHW_TRY(const auto comparison, compare_mapped(b, a, options, facts, progress));
  if (!comparison) return std::optional<CheckpointDifference>();
  return std::optional(difference_of(*comparison, *a, *b));
}

}  // namespace shw::verbs
