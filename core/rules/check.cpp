#include "core/rules/check.h"

#include <algorithm>

#include "core/base/leave_behind.h"
#include "core/facts/data_checks.h"
#include "core/facts/equal_tensors.h"
#include "core/facts/facts.h"
#include "core/rules/consequence.h"
#include "core/rules/explained.h"
#include "core/rules/layout/mesh_contradicted.h"
#include "core/rules/reference/other_model.h"
#include "core/rules/rules.h"
#include "core/rules/unjudged.h"
#include "core/spec/spec_from_checkpoint.h"

namespace shw {
namespace {

constexpr std::uint64_t kHeadersUpTo = 100'000;  // items; design 5.1

std::size_t rank_of(std::string_view rule) {
  auto rules = all_rules();
  auto found =
      std::find_if(rules.begin(), rules.end(), [&](const Rule& other) { return other.id == rule; });
  return static_cast<std::size_t>(found - rules.begin());
}

Depth default_depth(const Checkpoint& checkpoint) {
  std::uint64_t items = std::uint64_t{checkpoint.chunk_count()} + checkpoint.objects().size();
  return items <= kHeadersUpTo ? Depth::kHeaders : Depth::kMetadata;
}

std::string what_is_deeper(Depth depth) {
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

// Errors first, then warnings, then what is only to know; among equals a cause stands before what
// it explains.
void sort_findings(std::vector<Finding>& findings) {
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    if (a.severity != b.severity) return a.severity > b.severity;
    return rank_of(a.rule) < rank_of(b.rule);
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

// What is expected: the spec, else what the reference holds. What is of another model is refused:
// nothing is compared with it.
struct Expectation {
  std::shared_ptr<const Spec> spec;
  const Checkpoint* reference = nullptr;
  NameMap names;
  std::vector<Finding> refused;
};

Expectation expectation_of(const Checkpoint& checkpoint, const CheckOptions& options,
                           const Progress* progress) {
  Expectation out;
  out.spec = options.spec;
  if (out.spec != nullptr) {
    if (auto other = other_model_in_spec(checkpoint, *out.spec, progress)) {
      out.refused.push_back(std::move(*other));
      out.spec = nullptr;
    }
  }
  if (options.reference == nullptr) return out;
  NameMap names = match_names(checkpoint, *options.reference, progress);
  if (auto other =
          other_model_in_reference(checkpoint, *options.reference, names.in_reference, progress)) {
    out.refused.push_back(std::move(*other));
    return out;
  }
  out.reference = options.reference.get();
  out.names = std::move(names);
  if (out.spec == nullptr)
    out.spec = std::make_shared<const Spec>(
        spec_from_checkpoint(checkpoint, *options.reference, out.names, progress));
  return out;
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

bool leaves_open(const CheckReport& report) {
  return report.verdict == Verdict::kUndecided || has_undecided(report.findings);
}

Result<CheckReport> check(const Checkpoint& checkpoint, const CheckOptions& options,
                          Progress* progress) {
  CheckReport report;
  report.depth = options.depth.value_or(default_depth(checkpoint));
  report.deeper = what_is_deeper(report.depth);

  // Which tensors are tiled exactly: most rules ask for it.
  if (progress != nullptr)
    progress->begin(Phase::kCheckingMetadata, checkpoint.tensor_count(), /*bytes=*/false);
  std::vector<TensorTiling> tilings = judge_tilings(checkpoint, progress);
  if (is_cancelled(progress)) return cancelled_error();

  // What the items say about themselves, and whether their bytes are those that were written.
  std::vector<Result<ItemHeader>> headers;
  DataChecks data;
  std::map<TensorId, ReplicaDoubt> doubts;
  if (report.depth >= Depth::kHeaders && checkpoint.directory() != nullptr) {
    SHW_TRY(headers, read_item_headers(checkpoint, progress));
  }
  if (report.depth == Depth::kData && checkpoint.directory() != nullptr) {
    SHW_TRY(data, read_all_data(checkpoint, headers, progress, options.team, options.counted));
    SHW_TRY(doubts, doubtful_replicas(checkpoint, progress, options.team));
  }
  SHW_TRY(std::optional<Integrity> integrity,
          read_integrity(checkpoint, report.depth, progress, options.team));
  if (is_cancelled(progress)) return cancelled_error();

  auto stopped = [&] {
    leave_behind(std::pair(std::move(headers), std::move(data)));
    return cancelled_error();
  };
  Expectation expected = expectation_of(checkpoint, options, progress);
  if (is_cancelled(progress)) return stopped();
  CheckInput input{checkpoint,
                   expected.spec.get(),
                   options.mesh ? &*options.mesh : nullptr,
                   headers,
                   data.chunks,
                   data.objects,
                   tilings,
                   report.depth,
                   expected.reference,
                   expected.names.in_reference};
  input.integrity = integrity ? &*integrity : nullptr;
  input.replica_doubts = std::move(doubts);
  input.file_data = data.files;
  input.progress = progress;
  report.spec = expected.spec;
  auto opened = checkpoint.opening_findings();
  report.findings.assign(opened.begin(), opened.end());
  std::move(expected.refused.begin(), expected.refused.end(), std::back_inserter(report.findings));
  settle_mesh(input, report.findings);
  SHW_TRY(input.equal_to_reference, equal_to_reference(input, progress, options.team));
  const Facts facts = build_facts(input);
  if (is_cancelled(progress)) return stopped();
  for (const Rule& rule : all_rules()) {
    if (rule.run != nullptr && rule.depth <= report.depth) rule.run(facts, report.findings);
    if (is_cancelled(progress)) return stopped();
  }
  settle_symptoms(report.findings);
  sort_findings(report.findings);
  for (Finding& finding : report.findings)
    finding.consequence = consequence_of(finding, checkpoint);
  report.verdict = verdict_of(report.findings);
  report.unjudged = unjudged_of(facts, report.findings);
  // What was found while it was being stopped is no answer.
  if (is_cancelled(progress)) return stopped();
  return report;
}

}  // namespace shw
