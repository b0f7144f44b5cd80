// Several jobs at once: read-only jobs run next to writing ones, each can be stopped separately,
// and none changes results after its checkpoint was closed.
#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "core/session/session.h"
#include "core/temporary_folder.h"

using namespace shw;

namespace {

std::string beside_case(const std::string& path) {
  return std::string(SHW_TEST_DATA) + "/torch-2.14/" + path;
}

// A copy of a checkpoint with a plan. The commands in `holds` are paused as soon as they start.
struct BusySession {
  TemporaryFolder folder;
  Session session;
  std::string holds;
  explicit BusySession(const std::string& fixture = "s1_placement_not_transposed") {
    std::filesystem::copy(beside_case(fixture + "/ckpt"), folder / "step",
                          std::filesystem::copy_options::recursive);
    session.apply({OpenCommand{folder / "step", beside_case(fixture + "/spec.json")},
                   CheckCommand{}, PlanCommand{}});
    session.wait();
    REQUIRE(now()->plan != nullptr);
  }
  ~BusySession() { session.on_change(nullptr); }
  std::shared_ptr<const Snapshot> now() const { return session.snapshot(); }
  void apply(Command command) {
    session.apply(std::move(command));
    session.wait();
  }
  void begin_held(Command command) {
    std::string verb(row_of(command).verb);
    session.on_change([this, verb] {
      auto runs = [&](const JobState& job) { return job.verb == verb && !job.paused; };
      bool there = runs(session.job());
      for (const JobState& job : session.concurrent_jobs()) there = there || runs(job);
      if (there) session.apply(PauseCommand{verb});
    });
    apply(std::move(command));
    session.on_change(nullptr);
  }
  std::size_t beside() const { return session.concurrent_jobs().size(); }
};

}  // namespace

TEST_CASE("a comparison comes to its end while a repair is held, and each is stopped by itself") {
  BusySession s;
  s.begin_held(RepairCommand{{s.folder / "out", false}});
  REQUIRE(s.session.job().paused);
  CHECK(s.session.job().verb == "repair");
  s.apply(CompareCommand{beside_case("healthy_fsdp/ckpt"), true});
  REQUIRE(s.now()->compared != nullptr);
  auto compared = s.now()->compared;
  CHECK(s.beside() == 0);
  CHECK(s.session.job().paused);

  s.begin_held(CompareCommand{s.folder / "step", true});
  REQUIRE(s.beside() == 1);
  CHECK(s.session.concurrent_jobs()[0].verb == "compare");
  CHECK(s.session.concurrent_jobs()[0].paused);
  s.apply(CancelCommand{"compare"});
  CHECK(s.beside() == 0);
  CHECK(s.session.job().paused);  // the repair is not checked again
  CHECK(s.now()->compared == compared);
  REQUIRE(s.now()->error.has_value());
  CHECK(s.now()->error->kind == ErrorKind::kCancelled);

  s.begin_held(CompareCommand{s.folder / "step", true});
  s.apply(CancelCommand{"repair"});
  CHECK_FALSE(s.session.job().running);
  CHECK(s.beside() == 1);
  s.apply(ContinueCommand{"compare"});
  REQUIRE(s.now()->compared != nullptr);
  CHECK(s.now()->compared != compared);
  CHECK_FALSE(std::filesystem::exists(s.folder / "out"));
}

TEST_CASE("every byte is read while a plan is worked on, and what was edited stays edited") {
  BusySession s("s2_swiglu_t2");
  s.begin_held(CheckCommand{Depth::kData});
  REQUIRE(s.beside() == 1);
  std::size_t steps = s.now()->plan->operations.size();
  s.apply(StepCommand{0, false});
  REQUIRE_FALSE(s.now()->error.has_value());
  REQUIRE(s.now()->plan->operations.size() < steps);
  std::size_t less = s.now()->plan->operations.size();
  s.apply(ContinueCommand{"check"});
  REQUIRE(s.now()->report->depth == Depth::kData);
  CHECK(s.now()->plan == nullptr);  // it was made without the new findings
  s.apply(PlanCommand{});
  REQUIRE(s.now()->plan != nullptr);
  CHECK(s.now()->plan->operations.size() == less);
  s.apply(PlanUndoCommand{});
  CHECK_FALSE(s.now()->error.has_value());
}

TEST_CASE("what is opened meanwhile ends what looks at the one before, and hears nothing of it") {
  BusySession s;
  s.begin_held(CompareCommand{beside_case("healthy_fsdp/ckpt"), true});
  REQUIRE(s.beside() == 1);
  s.apply(OpenCommand{beside_case("healthy_grid/ckpt")});
  CHECK(s.beside() == 0);
  CHECK(s.now()->options.checkpoint == beside_case("healthy_grid/ckpt"));
  CHECK(s.now()->compared == nullptr);
  CHECK_FALSE(s.now()->error.has_value());
}

TEST_CASE("what is asked for twice is done once, as it was asked last") {
  BusySession s;
  s.begin_held(CompareCommand{beside_case("healthy_grid/ckpt"), true});
  s.apply(CompareCommand{beside_case("healthy_fsdp/ckpt")});
  CHECK(s.beside() == 0);
  REQUIRE(s.now()->compared != nullptr);
  CHECK(s.now()->compared_with == beside_case("healthy_fsdp/ckpt"));
  CHECK_FALSE(s.now()->error.has_value());
}

TEST_CASE("cancel: what was asked for during a repair is done, and what depends on it is not") {
  for (const char* verb : {"repair", ""}) {
    BusySession s;
    s.begin_held(RepairCommand{{s.folder / "out", false}});
    REQUIRE(s.session.job().paused);
    s.session.apply({OpenCommand{beside_case("healthy_grid/ckpt")}, CheckCommand{}});
    s.apply(CancelCommand{verb});
    const bool names_repair = *verb != 0;
    CHECK((s.now()->options.checkpoint == beside_case("healthy_grid/ckpt")) == names_repair);
    CHECK(s.now()->repaired == nullptr);
  }
  BusySession s;
  s.session.apply({OpenCommand{"/no/such/checkpoint"}, CheckCommand{Depth::kHeaders}});
  s.apply(OpenCommand{beside_case("healthy_grid/ckpt")});
  CHECK(s.now()->options.checkpoint == beside_case("healthy_grid/ckpt"));
  CHECK(s.now()->report == nullptr);
}

TEST_CASE("select: an index that was resolved in one report is not used in another") {
  BusySession s;
  const auto names = s.now()->checkpoint->tensor_count();
  REQUIRE(names > 0);
  std::atomic<bool> is_over = false;
  std::thread opens([&] {
    for (int i = 0; i < 20; ++i) {
      s.session.apply({OpenCommand{beside_case("healthy_grid/ckpt")}, CheckCommand{}});
      s.session.wait();
      s.session.apply(
          {OpenCommand{beside_case("s1_placement_not_transposed/ckpt")}, CheckCommand{}});
      s.session.wait();
    }
    is_over = true;
  });
  while (!is_over) {
    const auto seen = s.now();
    const auto last = TensorId{static_cast<std::uint32_t>(seen->checkpoint->tensor_count() - 1)};
    s.session.apply(SelectTensorCommand{std::string(seen->checkpoint->fqn(last))});
    s.session.apply(SelectFindingCommand{0});
    const auto now = s.now();
    if (now->tensor) CHECK(index_of(*now->tensor) < now->checkpoint->tensor_count());
    if (now->finding) {
      REQUIRE(now->report != nullptr);
      CHECK(*now->finding < now->report->findings.size());
    }
  }
  opens.join();
}

TEST_CASE("nothing reads a checkpoint while it is repaired in place") {
  BusySession s;
  s.begin_held(CompareCommand{beside_case("healthy_fsdp/ckpt"), true});
  REQUIRE(s.beside() == 1);
  s.apply(RepairCommand{{"", true}});
  CHECK(s.beside() == 0);
  if (s.now()->error) FAIL(s.now()->error->message);
  CHECK(s.now()->repaired != nullptr);
  CHECK(s.now()->compared == nullptr);
}

TEST_CASE("a session that is left stops what is next to") {
  auto s = std::make_unique<BusySession>();
  s->begin_held(CompareCommand{beside_case("healthy_fsdp/ckpt"), true});
  s->begin_held(VerifyCommand{});
  CHECK(s->beside() == 2);
  s.reset();
}

TEST_CASE("one job is named by its verb, and no other word") {
  for (const char* line : {"cancel compare", "pause check", "continue repair"}) {
    auto command = parse_command(line);
    REQUIRE_MESSAGE(command.has_value(), line);
    CHECK(to_text(*command) == line);
  }
  CHECK_FALSE(parse_command("cancel everything").has_value());
  CHECK_FALSE(parse_command("pause a b").has_value());
}
