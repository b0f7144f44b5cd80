// A repair in a session: stopped, resumed, rolled back, undone, kept.
#include <doctest/doctest.h>

#include <filesystem>

#include "core/faulty_store.h"
#include "core/io/store.h"
#include "core/repair/run/apply.h"
#include "core/session/command_run.h"
#include "core/session/session.h"
#include "core/temporary_folder.h"
#include "core/verbs/certificate_list.h"
#include "core/verbs/resume.h"

using namespace shw;

namespace {

struct RepairSession {
  TemporaryFolder folder;
  Session session;
  explicit RepairSession(const char* fixture) {
    std::string base = std::string(SHW_TEST_DATA) + "/torch-2.14/" + fixture;
    std::filesystem::copy(base + "/ckpt", folder / "step",
                          std::filesystem::copy_options::recursive);
    session.apply(
        {OpenCommand{folder / "step", base + "/spec.json"}, CheckCommand{}, PlanCommand{}});
    session.wait();
    REQUIRE(now()->plan != nullptr);
  }
  std::shared_ptr<const Snapshot> now() const { return session.snapshot(); }
  void apply(Command command) {
    session.apply(std::move(command));
    session.wait();
  }
  // Stops a run before its metadata is written: a run stopped while planning would leave nothing.
  void stop_while_writing(const std::string& out) {
    Progress progress;
    progress.keeps = true;
    FaultyStore store(posix_store(), [&](const std::string& step, const std::string& path) {
      if (step == "create" && path == ".metadata") progress.cancel();
      return std::optional<Error>();
    });
    auto stopped = apply_plan(store, *now()->checkpoint, *now()->plan, {out, false}, &progress);
    REQUIRE_FALSE(stopped.has_value());
    CHECK(stopped.error().kind == ErrorKind::kCancelled);
  }
};

}  // namespace

TEST_CASE("what a stopped repair left is gone on with by the process that stopped it") {
  RepairSession s("s1_placement_not_transposed");
  std::string out = s.folder / "out";
  for (int i = 0; i < 2; ++i) s.stop_while_writing(out);
  s.apply(TargetCommand{out});
  REQUIRE(s.now()->target != nullptr);
  REQUIRE(s.now()->target->half_made.size() == 1);
  s.apply(ResumeCommand{s.now()->target->half_made.front()});
  if (s.now()->error) FAIL(s.now()->error->message);
  REQUIRE(s.now()->repaired != nullptr);
  CHECK(s.now()->repaired->output == out);
  REQUIRE(s.now()->still_wrong != nullptr);
  CHECK(s.now()->still_wrong->empty());
  CHECK_FALSE(s.now()->can_undo);
  auto left = std::filesystem::directory_iterator(s.folder / "");
  CHECK(std::distance(begin(left), end(left)) == 2);  // the checkpoint and the result
}

TEST_CASE("what a stopped repair left is taken away, and the checkpoint stays as it was") {
  RepairSession s("s1_placement_not_transposed");
  std::string out = s.folder / "out";
  s.stop_while_writing(out);
  s.apply(TargetCommand{out});
  REQUIRE(s.now()->target->half_made.size() == 1);
  s.apply(RollBackCommand{s.now()->target->half_made.front()});
  if (s.now()->error) FAIL(s.now()->error->message);
  CHECK(s.now()->target->half_made.empty());
  auto left = std::filesystem::directory_iterator(s.folder / "");
  CHECK(std::distance(begin(left), end(left)) == 1);
  s.apply(RollBackCommand{out});
  CHECK(s.now()->error.has_value());  // nothing is left there
}

TEST_CASE("repair: another plan than the one that was shown is refused, and nothing is written") {
  RepairSession s("s1_placement_not_transposed");
  const std::string shown = s.now()->edits->edit().hash;
  const std::string out = s.folder / "out";
  s.apply(StepCommand{0, false});
  REQUIRE(s.now()->edits->edit().hash != shown);
  s.apply(RepairCommand{{out, false}, shown});
  CHECK(s.now()->error.has_value());
  CHECK(s.now()->repaired == nullptr);
  CHECK_FALSE(std::filesystem::exists(out));
  s.apply(PlanUndoCommand{});
  s.apply(RepairCommand{{out, false}, shown});
  CHECK_FALSE(s.now()->error.has_value());
  CHECK(std::filesystem::exists(out));
}

TEST_CASE("target: a second result beside one with the default name is said") {
  RepairSession s("s1_placement_not_transposed");
  s.apply(TargetCommand{});
  REQUIRE(s.now()->target != nullptr);
  CHECK(s.now()->target->earlier.empty());
  std::filesystem::create_directory(s.folder / "step-repaired");
  s.apply(TargetCommand{});
  CHECK(s.now()->target->earlier == s.folder / "step-repaired");
  CHECK(s.now()->target->path == s.folder / "step-repaired-b");
  s.apply(TargetCommand{s.folder / "step-repaired-c"});
  CHECK(s.now()->target->earlier.empty());
}

TEST_CASE("target: the bytes that a plan writes are counted once for all paths") {
  RepairSession s("s1_placement_not_transposed");
  s.apply(TargetCommand{s.folder / "out"});
  const auto counted = s.now()->target;
  REQUIRE(counted != nullptr);
  REQUIRE(counted->needs.has_value());
  CHECK(counted->needs_of == s.now()->plan);
  Snapshot next = *s.now();
  auto marked = std::make_shared<verbs::RepairTarget>(*counted);
  marked->needs = 12345;
  next.target = marked;
  const auto needs_of_next = [&](const std::string& path) {
    auto change = run_target(next, TargetCommand{path}, nullptr);
    REQUIRE(change.has_value());
    Snapshot after = next;
    (*change)(after);
    return after.target->needs;
  };
  CHECK(needs_of_next(s.folder / "other") == 12345);
  CHECK(needs_of_next(s.folder / "step") == 12345);  // refused, and counted all the same
  next.plan = std::make_shared<const Plan>(*next.plan);
  CHECK(needs_of_next(s.folder / "other") == counted->needs);
}

TEST_CASE("undo of a repair in place ends in the checkpoint as it was, checked, with its list") {
  RepairSession s("s1_placement_not_transposed");
  s.apply(FilterCommand{"finding:*"});
  std::size_t shown = s.now()->order->size();
  REQUIRE(shown > 0);
  std::size_t findings = s.now()->report->findings.size();
  s.apply(RepairCommand{{"", true}});
  if (s.now()->error) FAIL(s.now()->error->message);
  CHECK(s.now()->can_undo);
  s.apply(UndoCommand{});
  if (s.now()->error) FAIL(s.now()->error->message);
  CHECK(s.now()->repaired == nullptr);
  CHECK_FALSE(s.now()->can_undo);
  REQUIRE(s.now()->report != nullptr);
  CHECK(s.now()->report->findings.size() == findings);
  REQUIRE(s.now()->order != nullptr);
  CHECK(s.now()->order->size() == shown);
  CHECK(s.now()->tensor.has_value());
}

TEST_CASE("a repair in place can be taken back until it is committed, by a later session as well") {
  RepairSession s("s1_placement_not_transposed");
  s.apply(RepairCommand{{"", true}});
  REQUIRE(s.now()->can_undo);
  Session later;
  later.apply(OpenCommand{s.folder / "step"});
  later.wait();
  CHECK(later.snapshot()->can_undo);
  later.apply(CommitCommand{});
  later.wait();
  CHECK_FALSE(later.snapshot()->error.has_value());
  CHECK_FALSE(later.snapshot()->can_undo);
  s.apply(UndoCommand{});
  CHECK(s.now()->error.has_value());
}

TEST_CASE("check: after a repair in place the files are opened again, as the repair left them") {
  RepairSession s("s1_placement_not_transposed");
  s.apply(RepairCommand{{"", true}});
  REQUIRE(s.now()->can_undo);
  const auto read_before = s.now()->checkpoint;
  s.apply(SelectTensorCommand{s.now()->report->findings.front().subjects.front()});
  REQUIRE(s.now()->tensor.has_value());
  for (const std::optional<Depth> depth : {std::optional<Depth>(), std::optional(Depth::kData)}) {
    s.apply(CheckCommand{depth});
    if (s.now()->error) FAIL(s.now()->error->message);
    CHECK(s.now()->checkpoint != read_before);
    REQUIRE(s.now()->report != nullptr);
    for (const Finding& finding : s.now()->report->findings)
      CHECK(finding.severity == Severity::kInfo);
    CHECK(s.now()->plan == nullptr);
    CHECK(s.now()->can_undo);
    CHECK(s.now()->tensor.has_value());
  }
}

TEST_CASE(
    "check: after a repair into a copy the source gets a new plan, and the copy keeps its own") {
  RepairSession s("s1_placement_not_transposed");
  s.apply(RepairCommand{{s.folder / "out", false}});
  const Plan* made = executed_plan(*s.now());
  REQUIRE(made != nullptr);
  CHECK(is_plan_executed(*s.now()));
  s.apply(CheckCommand{});
  CHECK(s.now()->plan == nullptr);
  CHECK(executed_plan(*s.now()) == made);
  s.apply(PlanCommand{});
  REQUIRE(s.now()->plan != nullptr);
  CHECK_FALSE(is_plan_executed(*s.now()));
  s.apply(RepairCommand{{s.folder / "again", false}});
  if (s.now()->error) FAIL(s.now()->error->message);
  CHECK(s.now()->repaired->output == s.folder / "again");
  CHECK(executed_plan(*s.now()) == s.now()->plan.get());
}

TEST_CASE("the certificate tells of every tensor what became of it, the gravest first") {
  RepairSession s("s2_swiglu_t2");
  s.apply(RepairCommand{{s.folder / "out", false}});
  if (s.now()->error) FAIL(s.now()->error->message);
  REQUIRE(s.now()->certificate != nullptr);
  const verbs::CertificateList& list = *s.now()->certificate;
  CHECK(list.sealed);
  CHECK_FALSE(list.lossless);
  CHECK(list.rows.size() == s.now()->after->tensor_count());
  std::size_t counted = 0;
  for (std::size_t count : list.count) counted += count;
  CHECK(counted == list.rows.size());
  CHECK(list.rows.front().fate == verbs::TensorFate::kLost);
  CHECK(list.rows.front().note == "filled with zeros");
  CHECK(list.rows.back().fate == verbs::TensorFate::kKept);
  std::int64_t lost = 0, planned = 0;
  for (const auto& row : list.rows) lost += row.lost;
  for (const PlannedTensor& tensor : s.now()->plan->tensors) planned += tensor.lost_elements;
  CHECK(lost == planned);
}

TEST_CASE("the certificate of a relabel names what it has mended before all that it left alone") {
  RepairSession s("s1_placement_not_transposed");
  s.apply(RepairCommand{{s.folder / "out", false}});
  REQUIRE(s.now()->certificate != nullptr);
  const verbs::CertificateList& list = *s.now()->certificate;
  auto mended = list.count[static_cast<std::size_t>(verbs::TensorFate::kRelabelled)];
  CHECK(mended == s.now()->plan->tensors.size());
  CHECK(list.rows.front().fate == verbs::TensorFate::kRelabelled);
  CHECK(list.rows.back().fate == verbs::TensorFate::kKept);
}
