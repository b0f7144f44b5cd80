// The text of the bar at the top never claims more than was examined.
#include "views/verdict.h"

#include <doctest/doctest.h>

#include "core/formats/dcp/dcp_formats.h"
#include "core/model/builder.h"
#include "core/repair/run/estimate_text.h"
#include "core/rules/unreadable.h"
#include "make/snapshots.h"

using namespace shw;

namespace {

Finding finding_of(const std::string& rule) {
  Finding finding;
  finding.rule = rule;
  finding.severity = Severity::kError;
  finding.subjects = {"w"};
  finding.remedy = Remedy{"relabel", true, ""};
  return finding;
}

Snapshot planned(std::vector<Finding> undecided) {
  Snapshot snapshot;
  snapshot.checkpoint = std::make_shared<const Checkpoint>();
  CheckReport report;
  report.findings = {finding_of("placement-axis-moved"), finding_of("partly-lost")};
  report.verdict = Verdict::kFindings;
  snapshot.report = std::make_shared<const CheckReport>(std::move(report));
  Plan plan;
  plan.operations.emplace_back();
  plan.undecided = std::move(undecided);
  snapshot.plan = std::make_shared<const Plan>(std::move(plan));
  return snapshot;
}

Snapshot clean_with(std::vector<Finding> findings, std::vector<Unjudged> unjudged) {
  Snapshot snapshot;
  snapshot.checkpoint = std::make_shared<const Checkpoint>();
  CheckReport report;
  report.verdict = Verdict::kClean;
  report.depth = Depth::kData;
  report.findings = std::move(findings);
  report.unjudged = std::move(unjudged);
  snapshot.report = std::make_shared<const CheckReport>(std::move(report));
  return snapshot;
}

}  // namespace

TEST_CASE("a repair that mends all says that nothing is lost, one that leaves a finding does not") {
  auto detail = [](const Snapshot& snapshot) { return verdict_of(snapshot, {}, {}).detail; };
  CHECK(detail(planned({})).find("Nothing is lost") != std::string::npos);
  std::string partly = detail(planned({finding_of("partly-lost")}));
  CHECK(partly.find("Nothing is lost") == std::string::npos);
  CHECK(partly.find("1 finding stays unrepaired") != std::string::npos);
}

TEST_CASE(
    "a plan that is not lossless never says that nothing is lost, in the banner or above its "
    "steps") {
  for (const bool lossless : {true, false}) {
    Snapshot snapshot = planned({});
    auto plan = std::make_shared<Plan>(*snapshot.plan);
    plan->lossless = lossless;
    snapshot.plan = plan;
    for (const std::string& text : {verdict_of(snapshot, {}, {}).detail, summary_text_of(*plan)}) {
      CHECK((text.find("Nothing is lost") != std::string::npos) == lossless);
      CHECK((text.find("stays lost") != std::string::npos) == !lossless);
    }
  }
}

TEST_CASE("lost files without a remedy: the next step is to fill what is lost") {
  Snapshot snapshot = planned({});
  snapshot.plan = nullptr;
  CheckReport report = *snapshot.report;
  Finding finding = finding_of("missing-file");
  finding.remedy.reset();
  finding.evidence.emplace_back("file_count", std::int64_t{1});
  write_unreadable(8, 1, finding);
  report.findings = {finding};
  snapshot.report = std::make_shared<const CheckReport>(std::move(report));
  const VerdictText text = verdict_of(snapshot, {}, {});
  CHECK(text.next == Action::kReview);
  CHECK(text.next_label == "Fill what is lost");
}

TEST_CASE("verdict: NaN and infinity that the count found are named, but not those of masks") {
  const auto verdict_with = [](const std::string& fqn, std::uint64_t nan, std::uint64_t infinite) {
    CheckpointBuilder builder;
    builder.set_format(kDcpFormat);
    builder.add_tensor(fqn, Dtype::kFloat32, Extents{100});
    Snapshot snapshot;
    snapshot.checkpoint = builder.finish();
    snapshot.report = std::make_shared<CheckReport>(*make::healthy()->report);
    auto numbers = std::make_shared<verbs::CheckpointNumbers>();
    numbers->tensors.push_back({true, 100, nan, infinite, 0, 1});
    snapshot.numbers = numbers;
    return verdict_of(snapshot, {}, *make_finding_effects(snapshot));
  };
  const VerdictText calm = verdict_with("h.0.attn.c_attn.weight", 0, 0);
  CHECK(calm.tone != Tone::kWarn);
  for (const char* mask : {"h.0.attn.mask", "h.0.attn.bias", "causal_mask"}) {
    const VerdictText text = verdict_with(mask, 0, 45);
    CHECK(text.title == calm.title);
    CHECK(text.tone == calm.tone);
  }
  const VerdictText infinite = verdict_with("h.0.attn.c_attn.weight", 0, 3);
  CHECK(infinite.title == calm.title + "; infinite elements in 1 tensor");
  CHECK(infinite.tone == Tone::kWarn);
  CHECK(verdict_with("h.0.attn.bias", 3, 0).title == calm.title + "; NaN in 1 tensor");
  CHECK(verdict_with("causal_mask", 100, 0).title == calm.title + "; NaN in 1 tensor");
}

TEST_CASE("verdict: tensors that the count could not read whole are named") {
  auto snapshot = std::make_shared<Snapshot>(*make::healthy());
  auto numbers = std::make_shared<verbs::CheckpointNumbers>();
  numbers->tensors.resize(snapshot->checkpoint->tensor_count());
  snapshot->numbers = numbers;
  const VerdictText whole = verdict_of(*snapshot, {}, *make_finding_effects(*snapshot));
  numbers->partly_read_tensors = 2;
  const VerdictText text = verdict_of(*snapshot, {}, *make_finding_effects(*snapshot));
  CHECK(whole.tone == Tone::kOk);
  CHECK(text.tone == Tone::kWarn);
  CHECK(text.title == whole.title + "; 2 tensors could not be read whole");
}

TEST_CASE("digest: numbers that arrive after the report are counted") {
  auto before = make::healthy();
  const auto digest = make_digest(before);
  auto snapshot = std::make_shared<Snapshot>(*before);
  auto numbers = std::make_shared<verbs::CheckpointNumbers>();
  numbers->tensors.resize(snapshot->checkpoint->tensor_count());
  numbers->tensors[0] = {true, 100, 3, 0, 0, 1};
  snapshot->numbers = numbers;
  CHECK(make_digest(snapshot, digest.get())->about->nan_tensors == 1);
}

TEST_CASE("the window is named after what is open and what is known of it") {
  auto digest = make_digest(make::demo());
  CHECK(window_title(*digest, {}).find(" - Will not load: 1 cause, 3 tensors - Shardwright") !=
        std::string::npos);
  CHECK(window_title(*make_digest(std::make_shared<Snapshot>()), {}) == "Shardwright");
  auto repaired = std::make_shared<Snapshot>(*make::demo_repaired(true));
  repaired->options.checkpoint = "/runs/7/step_9000/";
  CHECK(window_title(*make_digest(repaired), {}).find("7/step_9000 - Will not load: ") == 0);
}

TEST_CASE(
    "verdict: a later check and its plan leave the words about the repaired copy as they were") {
  const auto repaired = make::demo_repaired(true);
  const VerdictText first = verdict_of(*repaired, {}, *make_finding_effects(*repaired));
  CHECK(first.detail.find("3 tensors mended") != std::string::npos);
  Snapshot checked = *repaired;
  checked.plan = nullptr;
  CHECK(verdict_of(checked, {}, *make_finding_effects(checked)).detail == first.detail);
  auto deeper = std::make_shared<Plan>(*repaired->plan);
  deeper->tensors.resize(2 * deeper->tensors.size());
  checked.plan = deeper;
  CHECK(verdict_of(checked, {}, *make_finding_effects(checked)).detail == first.detail);
  CHECK(is_plan_executed(*repaired));
  CHECK_FALSE(is_plan_executed(checked));
  checked.executed = nullptr;  // resumed by a process that never had the plan
  const std::string unknown = verdict_of(checked, {}, *make_finding_effects(checked)).detail;
  CHECK(unknown.find("Repaired, proved") != std::string::npos);
}

TEST_CASE(
    "recents: they keep the title of the banner, with its notes, numbers and repair in place") {
  const auto title = [](const Snapshot& s) {
    return verdict_of(s, {}, *make_finding_effects(s)).title;
  };
  Finding note = finding_of("value-statistics");
  note.severity = Severity::kInfo;
  const Snapshot noted = clean_with({note}, {});
  CHECK(verdict_to_remember(noted).summary == title(noted));
  CHECK(verdict_to_remember(noted).verdict == "clean");

  Snapshot damaged = *make::demo();
  CHECK(verdict_to_remember(damaged).verdict == "findings");
  const std::string before = verdict_to_remember(damaged).summary;
  Snapshot copied = *make::demo_repaired(true);
  CHECK(verdict_to_remember(copied).summary == before);
  CHECK(verdict_to_remember(copied).verdict == "findings");
  Snapshot mended = copied;
  mended.options.checkpoint = mended.repaired->output;
  CHECK(verdict_to_remember(mended).summary == title(mended));
  CHECK(verdict_to_remember(mended).verdict == "clean");
}

TEST_CASE("steps that were passed over for the newest complete one are below the verdict") {
  Snapshot snapshot = planned({});
  CHECK(verdict_of(snapshot, {}, {}).unjudged.empty());
  snapshot.passed_over = {"step_10000: files are gone"};
  CHECK(verdict_of(snapshot, {}, {}).unjudged ==
        "Passed over, since not complete: step_10000: files are gone. ");
}

TEST_CASE("a clean verdict counts the notes that the column at the side shows") {
  Finding note = finding_of("value-statistics");
  note.severity = Severity::kInfo;
  CHECK(verdict_of(clean_with({note}, {}), {}, {}).title.find("1 note") != std::string::npos);
  CHECK(verdict_of(clean_with({}, {}), {}, {}).title.find("note") == std::string::npos);
}

TEST_CASE("bytes without a checksum are read, and not said to agree with one") {
  const Unjudged open{.what = "whether the bytes of 13 items are unchanged since the save",
                      .needs = "checksums, which they do not have",
                      .is_unproved_bytes = true};
  CHECK(verdict_of(clean_with({}, {}), {}, {}).detail.find("checksum") != std::string::npos);
  CHECK(verdict_of(clean_with({}, {open}), {}, {}).detail.find("agrees") == std::string::npos);
}

TEST_CASE("elements that no repair brings back are counted where there is no plan") {
  Snapshot snapshot = planned({});
  snapshot.plan = nullptr;
  CheckReport report;
  report.verdict = Verdict::kFindings;
  report.findings = {finding_of("local-saved-as-global")};
  report.findings[0].remedy.reset();
  report.findings[0].evidence = {{"missing_elements", std::int64_t{3712}}};
  snapshot.report = std::make_shared<const CheckReport>(std::move(report));
  CHECK(verdict_of(snapshot, {}, {}).detail.find("3,712 elements are lost") != std::string::npos);
}
