#include "core/rules/check.h"

#include <algorithm>
#include <cassert>
#include <set>
#include <string_view>

#include "core/base/destroy_in_background.h"
#include "core/facts/facts.h"
#include "core/facts/reference/equal_tensors.h"
#include "core/facts/states/states_spec.h"
#include "core/facts/storage/data_checks.h"
#include "core/io/remote/remote_path.h"
#include "core/model/evidence.h"
#include "core/rules/consequence.h"
#include "core/rules/explained.h"
#include "core/rules/layout/mesh_contradicted.h"
#include "core/rules/names/adapter_base.h"
#include "core/rules/reference/one_side_quantised.h"
#include "core/rules/reference/other_model.h"
#include "core/rules/rules.h"
#include "core/rules/side_files.h"
#include "core/rules/unjudged.h"
#include "core/spec/spec_from_checkpoint.h"

namespace shw {
namespace {

constexpr std::uint64_t kHeadersUpTo = 100'000;  // items
// Each header is a round trip: 64 of 50 ms are 3 s.
constexpr std::uint64_t kRemoteHeadersUpTo = 64;
// Limit for entries of single ranks below Depth::kData: a generator state has 5 kB, a loader state
// less.
constexpr std::uint64_t kMaxOwnEntries = std::uint64_t{64} << 20;

std::size_t index_of_rule(std::string_view rule) {
  auto rules = all_rules();
  auto found =
      std::find_if(rules.begin(), rules.end(), [&](const Rule& other) { return other.id == rule; });
  return static_cast<std::size_t>(found - rules.begin());
}

// Number of items with their own header; other formats store bare elements.
std::uint64_t count_items_with_header(const Checkpoint& checkpoint) {
  std::uint64_t items = checkpoint.objects().size();
  for (std::uint32_t i = 0; i < checkpoint.chunk_count(); ++i)
    items += checkpoint.codec(ChunkId{i}).is_without_header ? 0 : 1;
  return items;
}

Depth default_depth(const Checkpoint& checkpoint) {
  const auto& directory = checkpoint.directory();
  if (directory != nullptr && is_remote(directory->name()) &&
      count_items_with_header(checkpoint) > kRemoteHeadersUpTo)
    return Depth::kMetadata;
  std::uint64_t items = std::uint64_t{checkpoint.chunk_count()} + checkpoint.objects().size();
  return items <= kHeadersUpTo ? Depth::kHeaders : Depth::kMetadata;
}

std::string deeper_check_text(Depth depth) {
  switch (depth) {
    case Depth::kMetadata:
      return "--depth headers also compares each item's own shape and dtype with the metadata; "
             "--data also reads every byte and compares checksums";
    case Depth::kHeaders:
      return "--data also reads every byte and compares checksums";
    case Depth::kData:
      break;
  }
  return "";
}

// By severity; for equal severity a cause comes before its
// symptoms.
void sort_findings(std::vector<Finding>& findings) {
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    if (a.severity != b.severity) return a.severity > b.severity;
    return index_of_rule(a.rule) < index_of_rule(b.rule);
  });
}

bool has_undecided(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return rule_of(finding).leaves_undecided; });
}

Verdict verdict_of(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    if (finding.severity > Severity::kInfo) return Verdict::kFindings;
  }
  return has_undecided(findings) ? Verdict::kUndecided : Verdict::kClean;
}

// The expected entries: from the spec, and for other tensors from the reference. A spec or
// reference of another model is rejected.
struct Expectation {
  std::shared_ptr<const Spec> spec;
  const Checkpoint* reference = nullptr;
  NameMap names;
  std::set<TensorId> doubted;  // CheckInput::untrusted_in_reference
  std::vector<Finding> refused;
};

using States = std::shared_ptr<const std::vector<OptimizerState>>;

// Tensors that are damaged in the reference itself. A trainer may save every step with the same
// damage, so equality of two steps proves nothing there, and a difference may mean that only one
// was repaired.
Result<std::set<TensorId>> untrusted_in_reference(const Checkpoint& checkpoint,
                                                  const CheckOptions& options, Depth depth,
                                                  const NameMap& names, Progress* progress) {
  const Checkpoint& reference = *options.reference;
  CheckOptions alone;
  alone.depth = std::min({depth, default_depth(reference), Depth::kHeaders});
  alone.mesh = options.mesh;
  alone.memory = options.memory;
  SHW_TRY(CheckReport report, check(reference, alone, progress));
  // Tensors that differ are compared even if there is only a hint.
  std::set<std::string_view> named, hinted;
  for (const Finding& finding : report.findings) {
    const Rule& rule = rule_of(finding);
    if (!rule.makes_shapes_doubtful) continue;
    auto& to = finding.severity > Severity::kInfo ? named : hinted;
    if (finding.severity > Severity::kInfo || !rule.hint.what.empty())
      to.insert(finding.subjects.begin(), finding.subjects.end());
  }
  std::set<TensorId> doubted;
  if (named.empty() && hinted.empty()) return doubted;
  for (TensorId tensor : cancellable_range(checkpoint.tensors(), progress)) {
    auto other = names.in_reference[index_of(tensor)];
    if (!other) continue;
    std::string_view fqn = reference.fqn(*other);
    if (named.contains(fqn) ||
        (hinted.contains(fqn) && same(checkpoint.shape(tensor), reference.shape(*other))))
      doubted.insert(tensor);
  }
  return doubted;
}

bool is_named(const Spec& spec, const Checkpoint& checkpoint, TensorId tensor) {
  return spec.find(checkpoint.fqn(tensor)) != nullptr;
}

// A spec may cover a part of the model: for other tensors of the checkpoint the reference's shapes
// are expected. Tensors that only the reference has are not expected.
std::shared_ptr<const Spec> spec_with_reference_shapes(const Checkpoint& checkpoint,
                                                       const std::shared_ptr<const Spec>& spec,
                                                       Spec held, Progress* progress) {
  std::shared_ptr<Spec> more;
  for (TensorId tensor : cancellable_range(checkpoint.tensors(), progress)) {
    if (is_named(*spec, checkpoint, tensor)) continue;
    auto found = held.entries.find(checkpoint.fqn(tensor));
    if (found == held.entries.end()) continue;
    if (more == nullptr) more = std::make_shared<Spec>(*spec);
    more->entries.insert(held.entries.extract(found));
  }
  return more != nullptr ? more : spec;
}

Result<Expectation> expectation_of(const Checkpoint& checkpoint, const CheckOptions& options,
                                   Depth depth, const States& states, Progress* progress) {
  Expectation out;
  out.spec = options.spec;
  if (out.spec != nullptr) {
    if (auto other = other_model_in_spec(checkpoint, *out.spec, progress)) {
      out.refused.push_back(std::move(*other));
      out.spec = nullptr;
    }
  }
  if (out.spec != nullptr) out.spec = with_states(checkpoint, out.spec, *states, progress);
  if (options.reference == nullptr) return out;
  // An adapter has none of the base tensors: its matrices are compared with the base's sizes.
  if (is_adapter_of_base(checkpoint, *options.reference)) {
    for (Finding& finding : adapter_against_base(checkpoint, *options.reference, progress))
      out.refused.push_back(std::move(finding));
    return out;
  }
  NameMap names = match_names(checkpoint, *options.reference, progress);
  OneSideQuantised sides = find_one_side_quantised(checkpoint, *options.reference, progress);
  unmatch(sides, names);
  if (auto other = other_model_in_reference(checkpoint, *options.reference, names.in_reference,
                                            sides, progress)) {
    out.refused.push_back(std::move(*other));
    return out;
  }
  if (sides.finding) out.refused.push_back(std::move(*sides.finding));
  out.reference = options.reference.get();
  out.names = std::move(names);
  SHW_TRY(out.doubted, untrusted_in_reference(checkpoint, options, depth, out.names, progress));
  Spec held =
      spec_from_checkpoint(checkpoint, *options.reference, out.names, out.doubted, progress);
  drop_expectations(sides, checkpoint, *options.reference, held);
  if (out.spec != nullptr) {
    std::erase_if(out.doubted,
                  [&](TensorId tensor) { return is_named(*out.spec, checkpoint, tensor); });
    out.spec = spec_with_reference_shapes(checkpoint, out.spec, std::move(held), progress);
  } else {
    out.spec = std::make_shared<const Spec>(std::move(held));
  }
  return out;
}

// Everything that is read before the rules run.
struct DataReadBeforeRules {
  std::vector<TensorTiling> tilings;  // which tensors are tiled exactly; most rules need it
  ItemHeaders headers;                // headers of the items
  DataChecks data;                    // checksum results
  std::map<TensorId, ReplicaMismatch> doubts;
  RankSpecificEntries own_entries;
  std::optional<Integrity> integrity;
};

Status read_checked_data(const Checkpoint& checkpoint, Depth depth, const CheckOptions& options,
                         Progress* progress, DataReadBeforeRules& out) {
  if (progress != nullptr)
    progress->begin(Phase::kCheckingMetadata, checkpoint.tensor_count(), /*bytes=*/false);
  out.tilings = compute_tilings(checkpoint, progress);
  if (is_cancelled(progress)) return cancelled_error();
  const bool has_files = checkpoint.directory() != nullptr;
  if (depth >= Depth::kHeaders && has_files) {
    SHW_TRY(out.headers, read_item_headers(checkpoint, progress));
    SHW_TRY(out.own_entries,
            own_entries(checkpoint, depth == Depth::kData ? UINT64_MAX : kMaxOwnEntries, progress));
  }
  if (depth == Depth::kData && has_files) {
    SHW_TRY(out.data,
            read_all_data(checkpoint, out.headers, progress, options.team, options.counted));
    SHW_TRY(out.doubts, mismatched_replicas(checkpoint, progress, options.team));
  }
  SHW_TRY(out.integrity, read_integrity(checkpoint, depth, progress, options.team));
  if (is_cancelled(progress)) return cancelled_error();
  return {};
}

CheckInput make_check_input(const Checkpoint& checkpoint, const CheckOptions& options, Depth depth,
                            DataReadBeforeRules& looked, const Expectation& expected,
                            Progress* progress) {
  CheckInput input{checkpoint,
                   expected.spec.get(),
                   options.mesh ? &*options.mesh : nullptr,
                   looked.headers,
                   looked.data.chunks,
                   looked.data.objects,
                   looked.tilings,
                   depth,
                   expected.reference,
                   expected.names.in_reference};
  input.untrusted_in_reference = expected.doubted;
  input.integrity = looked.integrity ? &*looked.integrity : nullptr;
  input.replica_mismatches = std::move(looked.doubts);
  input.own_entries = std::move(looked.own_entries);
  input.file_data = looked.data.files;
  input.progress = progress;
  input.team = options.team;
  input.memory = options.memory;
  return input;
}

// Adds findings from opening, and findings about given options that do not fit.
void add_findings_before_rules(const Checkpoint& checkpoint, Expectation& expected,
                               CheckInput& input, std::vector<Finding>& findings) {
  auto opened = checkpoint.opening_findings();
  findings.assign(opened.begin(), opened.end());
  std::move(expected.refused.begin(), expected.refused.end(), std::back_inserter(findings));
  resolve_mesh(input, findings);
}

Status run_all_rules(const Facts& facts, CheckReport& report) {
  std::uint64_t judged = 0;
  for (const Rule& rule : all_rules()) {
    // A rule that reads data shows its own progress meanwhile.
    if (facts.progress != nullptr) {
      facts.progress->begin(Phase::kCheckingMetadata, all_rules().size(), /*bytes=*/false);
      facts.progress->add(judged++);
    }
    if (rule.depth <= report.depth) SHW_CHECK(run_rule(rule, facts, report.findings));
    if (is_cancelled(facts.progress)) return cancelled_error();
  }
  if (facts.progress != nullptr) {
    facts.progress->begin(Phase::kCheckingMetadata, judged, /*bytes=*/false);
    facts.progress->add(judged);
  }
  return {};
}

void finish_report(const Facts& facts, CheckReport& report) {
  demote_symptoms(report.findings);
  sort_findings(report.findings);
  for (Finding& finding : report.findings) {
    assert(std::all_of(finding.evidence.begin(), finding.evidence.end(),
                       [](const auto& entry) { return is_evidence(entry.first, entry.second); }));
    finding.consequence = consequence_of(finding, facts.checkpoint);
  }
  report.verdict = verdict_of(report.findings);
  report.unjudged = unjudged_of(facts, report.findings);
}

// Opens a trainer's files in the checkpoint's folder, and checks each as deeply as the checkpoint.
Result<SideFiles> side_files_in_folder(const Checkpoint& checkpoint, const CheckOptions& options,
                                       const CheckReport& report, Progress* progress) {
  CheckOptions alone;
  alone.depth = report.depth;
  alone.team = options.team;
  alone.memory = options.memory;
  auto check_alone = [&](const Checkpoint& side) -> Result<std::vector<Finding>> {
    SHW_TRY(CheckReport inner, check(side, alone, progress));
    return std::move(inner.findings);
  };
  return check_side_files(checkpoint, report.depth, report.findings, check_alone, progress);
}

}  // namespace

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kClean:
      return "clean";
    case Verdict::kFindings:
      return "findings";
    case Verdict::kUndecided:
      break;
  }
  return "undecided";
}

bool has_unexamined_parts(const CheckReport& report) {
  return report.verdict == Verdict::kUndecided || has_undecided(report.findings);
}

Result<CheckReport> check(const Checkpoint& checkpoint, const CheckOptions& options,
                          Progress* progress) {
  CheckReport report;
  report.depth = options.depth.value_or(default_depth(checkpoint));
  report.deeper = deeper_check_text(report.depth);
  DataReadBeforeRules looked;
  SHW_CHECK(read_checked_data(checkpoint, report.depth, options, progress, looked));
  // Destroys 250,000 headers in the background. After cancellation the findings are incomplete and
  // dropped.
  auto stopped = [&] {
    destroy_in_background(std::pair(std::move(looked.headers), std::move(looked.data)));
    return cancelled_error();
  };
  auto states =
      std::make_shared<const std::vector<OptimizerState>>(optimizer_states(checkpoint, progress));
  Result<Expectation> expectation =
      expectation_of(checkpoint, options, report.depth, states, progress);
  if (is_cancelled(progress)) return stopped();
  SHW_TRY(Expectation expected, std::move(expectation));
  report.spec = expected.spec;
  CheckInput input =
      make_check_input(checkpoint, options, report.depth, looked, expected, progress);
  input.states = std::move(states);
  add_findings_before_rules(checkpoint, expected, input, report.findings);
  SHW_TRY(input.equal_to_reference, equal_to_reference(input, progress, options.team));
  Facts facts = build_facts(input);
  if (is_cancelled(progress)) return stopped();
  SHW_TRY(facts.looks, read_optimizer_values(facts, facts.optimizer_settings));
  Status done = run_all_rules(facts, report);
  if (is_cancelled(progress)) return stopped();
  if (!done) return tl::unexpected<Error>(std::move(done).error());
  auto sides = side_files_in_folder(checkpoint, options, report, progress);
  if (is_cancelled(progress)) return stopped();
  if (!sides) return tl::unexpected<Error>(std::move(sides).error());
  std::move(sides->findings.begin(), sides->findings.end(), std::back_inserter(report.findings));
  finish_report(facts, report);
  if (is_cancelled(progress)) return stopped();
  std::move(sides->unjudged.begin(), sides->unjudged.end(), std::back_inserter(report.unjudged));
  return report;
}

}  // namespace shw
