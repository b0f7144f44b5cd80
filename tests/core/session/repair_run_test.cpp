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

TEST_CASE("stopped: a repair is found beside the checkpoint, and resumed with its own plan") {
  RepairSession s("s1_placement_not_transposed");
  std::string out = s.folder / "out";
  for (int i = 0; i < 2; ++i) s.stop_while_writing(out);
  const auto stopped_plan = s.now()->plan;
  s.apply(OpenCommand{s.folder / "step"});  // no report, and so no plan
  REQUIRE(first_stopped_run(*s.now()) != nullptr);
  CHECK(s.now()->stopped->runs.size() == 1);
  const verbs::StoppedRun run = *first_stopped_run(*s.now());
  CHECK(run.output == out);
  CHECK(run.is_of_open);
  CHECK(run.files > 0);
  CHECK_FALSE(run.not_resumable.has_value());
  REQUIRE(run.plan != nullptr);
  CHECK(run.plan->operations.size() == stopped_plan->operations.size());
  s.apply(CheckCommand{});
  s.apply(PlanCommand{});
  s.apply(StepCommand{0, false});  // the plan on the screen is another one
  s.apply(ResumeCommand{run.folder});
  if (s.now()->error) FAIL(s.now()->error->message);
  REQUIRE(s.now()->repaired != nullptr);
  CHECK(s.now()->repaired->output == out);
  REQUIRE(executed_plan(*s.now()) != nullptr);
  CHECK(executed_plan(*s.now())->operations.size() == stopped_plan->operations.size());
  REQUIRE(s.now()->result_findings != nullptr);
  CHECK(s.now()->result_findings->empty());
  CHECK_FALSE(s.now()->can_undo);
  CHECK(s.now()->stopped->runs.empty());
  auto left = std::filesystem::directory_iterator(s.folder / "");
  CHECK(std::distance(begin(left), end(left)) == 2);  // the checkpoint and the result
}

TEST_CASE("stopped: a repair is discarded, and the checkpoint stays as it was") {
  RepairSession s("s1_placement_not_transposed");
  std::string out = s.folder / "out";
  s.stop_while_writing(out);
  s.apply(TargetCommand{out});
  REQUIRE(first_stopped_run(*s.now()) != nullptr);
  s.apply(RollBackCommand{first_stopped_run(*s.now())->folder});
  if (s.now()->error) FAIL(s.now()->error->message);
  CHECK(s.now()->stopped->runs.empty());
  auto left = std::filesystem::directory_iterator(s.folder / "");
  CHECK(std::distance(begin(left), end(left)) == 1);
  s.apply(RollBackCommand{out});
  CHECK(s.now()->error.has_value());  // nothing is left there
}

TEST_CASE("stopped: a repair into another folder is found where that folder is typed") {
  RepairSession s("s1_placement_not_transposed");
  std::filesystem::create_directory(s.folder / "scratch");
  const std::string out = s.folder / "scratch/out";
  s.stop_while_writing(out);
  s.apply(OpenCommand{s.folder / "step"});
  CHECK(s.now()->stopped->runs.empty());
  s.apply(TargetCommand{out});
  REQUIRE(first_stopped_run(*s.now()) != nullptr);
  CHECK(first_stopped_run(*s.now())->output == out);
}

TEST_CASE("stopped: the repair of another checkpoint is neither offered nor resumed here") {
  RepairSession s("s1_placement_not_transposed");
  std::string out = s.folder / "out";
  s.stop_while_writing(out);
  s.apply(TargetCommand{out});
  const std::string partial = first_stopped_run(*s.now())->folder;
  std::filesystem::copy(s.folder / "step", s.folder / "step_2",
                        std::filesystem::copy_options::recursive);
  s.apply(OpenCommand{s.folder / "step_2"});
  CHECK(s.now()->stopped->runs.empty());
  s.apply(ResumeCommand{partial});
  CHECK(s.now()->error.has_value());
  CHECK_FALSE(std::filesystem::exists(out));
}

TEST_CASE("stopped: a repair whose checkpoint has changed can only be discarded") {
  RepairSession s("s1_placement_not_transposed");
  s.stop_while_writing(s.folder / "out");
  std::filesystem::last_write_time(s.folder / "step/__0_0.distcp",
                                   std::filesystem::file_time_type::clock::now());
  s.apply(OpenCommand{s.folder / "step"});
  REQUIRE(first_stopped_run(*s.now()) != nullptr);
  CHECK(first_stopped_run(*s.now())->not_resumable.has_value());
}

TEST_CASE("stopped: a repair that another process began is noticed while the window is open") {
  RepairSession s("s1_placement_not_transposed");
  CHECK(s.now()->stopped->runs.empty());
  const auto before = s.now()->revision;
  s.apply(DiskCommand{});
  CHECK(s.now()->revision == before);
  s.stop_while_writing(s.folder / "out");
  s.apply(DiskCommand{});
  CHECK(first_stopped_run(*s.now()) != nullptr);
  const auto seen = s.now()->revision;
  s.apply(DiskCommand{});
  CHECK(s.now()->revision == seen);
}

TEST_CASE("stopped: a repair in place is resumed or discarded, and the checkpoint checked again") {
  // Killed before or after .metadata was replaced.
  for (bool is_replaced : {false, true}) {
    for (bool resumes : {false, true}) {
      CAPTURE(is_replaced);
      CAPTURE(resumes);
      RepairSession s("s1_placement_not_transposed");
      bool is_replacing = false, is_dead = false;
      FaultyStore store(posix_store(), [&](const std::string& step, const std::string& path) {
        is_dead = is_dead || (is_replacing && is_replaced);
        is_replacing = step == "rename" && path.ends_with(".metadata");
        is_dead = is_dead || (is_replacing && !is_replaced);
        return is_dead ? std::optional<Error>(Error{ErrorKind::kIo, "killed"}) : std::nullopt;
      });
      ApplyOptions options;
      options.in_place = true;
      REQUIRE_FALSE(apply_plan(store, *s.now()->checkpoint, *s.now()->plan, options, nullptr));
      std::filesystem::remove(s.folder / "step/.shardwright-owner");  // of a dead process
      s.apply(OpenCommand{s.folder / "step"});
      s.apply(CheckCommand{});
      REQUIRE(first_stopped_run(*s.now()) != nullptr);
      const verbs::StoppedRun run = *first_stopped_run(*s.now());
      CHECK(run.in_place);
      CHECK((run.plan != nullptr) == !is_replaced);
      if (resumes)
        s.apply(ResumeCommand{run.folder});
      else
        s.apply(RollBackCommand{run.folder});
      if (s.now()->error) FAIL(s.now()->error->message);
      CHECK(s.now()->can_undo == resumes);
      CHECK(s.now()->stopped->runs.empty());
      CHECK(s.now()->report != nullptr);
    }
  }
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
  CHECK(counted->plan_of_needs == s.now()->plan);
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
  CHECK(list.rows.front().fate == verbs::TensorOutcome::kLost);
  CHECK(list.rows.front().note == "filled with zeros");
  CHECK(list.rows.back().fate == verbs::TensorOutcome::kKept);
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
  auto mended = list.count[static_cast<std::size_t>(verbs::TensorOutcome::kRelabelled)];
  CHECK(mended == s.now()->plan->tensors.size());
  CHECK(list.rows.front().fate == verbs::TensorOutcome::kRelabelled);
  CHECK(list.rows.back().fate == verbs::TensorOutcome::kKept);
}
