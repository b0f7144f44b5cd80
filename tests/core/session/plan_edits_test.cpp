// A user edits a plan: steps off and on, undo, text, files.
#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "core/repair/plan/plan.h"
#include "core/session/session.h"
#include "core/temporary_folder.h"

using namespace shw;

namespace {

std::string plan_case(const char* path) {
  return std::string(SHW_TEST_DATA) + "/torch-2.14/s2_swiglu_t2/" + path;
}

struct PlannedSession {
  Session session;
  TemporaryFolder folder;
  PlannedSession() {
    session.apply(
        {OpenCommand{plan_case("ckpt"), plan_case("spec.json")}, CheckCommand{}, PlanCommand{}});
    session.wait();
    REQUIRE(now()->plan != nullptr);
    REQUIRE(now()->edits != nullptr);
  }
  std::shared_ptr<const Snapshot> now() const { return session.snapshot(); }
  void apply(Command command) {
    session.apply(std::move(command));
    session.wait();
  }
  std::string hash() const { return now()->edits->edit().hash; }
};

std::string text_of_plan(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("a step that is switched off leaves the plan, and undo and redo bring it back and away") {
  PlannedSession s;
  std::string whole = s.hash();
  std::size_t steps = s.now()->plan->operations.size();
  s.apply(StepCommand{0, false});
  REQUIRE_FALSE(s.now()->error.has_value());
  CHECK(s.now()->plan->operations.size() < steps);
  CHECK(s.hash() != whole);
  CHECK_FALSE(s.now()->plan->undecided.empty());
  std::string less = s.hash();

  s.apply(PlanUndoCommand{});
  CHECK(s.hash() == whole);
  CHECK(s.now()->plan->operations.size() == steps);
  s.apply(PlanRedoCommand{});
  CHECK(s.hash() == less);
  s.apply(StepCommand{0, true});
  CHECK(s.hash() == whole);
  CHECK(s.now()->edits->all.size() == 3);
  // An edit after an undo drops the edits that could be redone.
  s.apply(PlanUndoCommand{});
  s.apply(PlanUndoCommand{});
  s.apply(StepCommand{0, false});
  CHECK(s.now()->edits->all.size() == 2);
  CHECK_FALSE(s.now()->edits->can_redo());
  CHECK(s.now()->edits->edit().what.find("step 1 off") == 0);
}

TEST_CASE("nothing can be undone before an edit, and a step that is not there says so") {
  PlannedSession s;
  s.apply(PlanUndoCommand{});
  CHECK(s.now()->error.has_value());
  s.apply(PlanRedoCommand{});
  CHECK(s.now()->error.has_value());
  s.apply(StepCommand{99, false});
  REQUIRE(s.now()->error.has_value());
  CHECK(s.now()->error->kind == ErrorKind::kUsage);
  CHECK(s.now()->edits->all.size() == 1);
}

TEST_CASE("a plan that is saved is what repair --plan reads, and loads as the same plan") {
  PlannedSession s;
  s.apply(StepCommand{0, false});
  std::string path = s.folder / "plan.json";
  s.apply(SavePlanCommand{path});
  REQUIRE_FALSE(s.now()->error.has_value());
  CHECK(s.now()->options.plan == path);
  CHECK(text_of_plan(path) == plan_to_json(*s.now()->checkpoint, *s.now()->plan));
  std::string saved = s.hash();

  s.apply(StepCommand{0, true});
  CHECK(s.now()->options.plan.empty());  // this plan is not saved
  s.apply(LoadPlanCommand{path});
  REQUIRE_FALSE(s.now()->error.has_value());
  CHECK(s.hash() == saved);
  CHECK(s.now()->options.plan == path);
  s.apply(PlanUndoCommand{});
  CHECK(s.now()->options.plan.empty());
  s.apply(PlanRedoCommand{});
  CHECK(s.now()->options.plan == path);
  s.apply(SavePlanCommand{path});  // over a plan
  CHECK_FALSE(s.now()->error.has_value());
}

TEST_CASE("a plan is never saved over something else, nor into the checkpoint") {
  PlannedSession s;
  std::string path = s.folder / "notes.txt";
  std::ofstream(path) << "what I must not lose";
  s.apply(SavePlanCommand{path});
  REQUIRE(s.now()->error.has_value());
  CHECK(text_of_plan(path) == "what I must not lose");
  s.apply(SavePlanCommand{plan_case("ckpt/plan.json")});
  REQUIRE(s.now()->error.has_value());
  CHECK(s.now()->error->message.find("next to the checkpoint") != std::string::npos);
  s.apply(LoadPlanCommand{path});
  REQUIRE(s.now()->error.has_value());
  CHECK(s.now()->edits->all.size() == 1);
}

TEST_CASE("a plan edited as text goes through the reader of plans, and what is wrong is said") {
  PlannedSession s;
  std::string text = plan_to_json(*s.now()->checkpoint, *s.now()->plan);
  CHECK(s.now()->edits->edit().json == text);
  std::string whole = s.hash();
  s.apply(*parse_command(to_text(EditPlanCommand{text})));  // as a line of a replay
  REQUIRE_FALSE(s.now()->error.has_value());
  CHECK(s.hash() == whole);
  CHECK(s.now()->edits->all.size() == 2);
  s.apply(EditPlanCommand{"{\"plan\": 1"});
  REQUIRE(s.now()->error.has_value());
  CHECK(s.now()->error->message.starts_with("not JSON: syntax error"));
  std::string forged = text;
  forged.replace(forged.find("\"lost_elements\": "), 17, "\"lost_elements\": 7");
  s.apply(EditPlanCommand{forged});
  CHECK(s.now()->error.has_value());
  CHECK(s.hash() == whole);
}

TEST_CASE("another filling keeps the steps that are off") {
  PlannedSession s;
  std::size_t whole = s.now()->plan->operations.size();
  s.apply(StepCommand{0, false});
  std::size_t less = s.now()->plan->operations.size();
  REQUIRE(less < whole);
  s.apply(PlanCommand{"zero"});
  REQUIRE_FALSE(s.now()->error.has_value());
  CHECK(s.now()->plan->operations.size() == less);
  CHECK(s.now()->options.fill == "zero");
  s.apply(PlanUndoCommand{});
  CHECK(s.now()->options.fill.empty());
}

TEST_CASE("a dry run says what a repair takes and writes nothing") {
  PlannedSession s;
  s.apply(TargetCommand{s.folder / "out"});
  REQUIRE(s.now()->target != nullptr);
  CHECK_FALSE(s.now()->target->refused.has_value());
  s.apply(DryRunCommand{});
  REQUIRE_FALSE(s.now()->error.has_value());
  REQUIRE(s.now()->outlook != nullptr);
  CHECK(s.now()->outlook->bytes_written > 0);
  CHECK(s.now()->outlook->tiles_made + s.now()->outlook->tiles_kept > 0);
  CHECK(s.now()->outlook->forecast.memory > 0);
  CHECK_FALSE(std::ifstream(s.folder / "out").good());
  s.apply(StepCommand{0, false});
  CHECK(s.now()->outlook == nullptr);  // it was for another plan
}

TEST_CASE("what is there already is said before a repair is applied") {
  PlannedSession s;
  std::string path = s.folder / "there";
  std::ofstream(path) << "x";
  s.apply(TargetCommand{path});
  REQUIRE(s.now()->target->refused.has_value());
  CHECK(s.now()->target->refused->message.find("already exists") != std::string::npos);
  s.apply(TargetCommand{plan_case("ckpt/out")});
  CHECK(s.now()->target->refused.has_value());
  s.apply(TargetCommand{s.folder / "no/such/parent/out"});
  CHECK(s.now()->target->refused.has_value());
  s.apply(TargetCommand{"~/shardwright-is-not-there"});
  REQUIRE_FALSE(s.now()->target->refused.has_value());
  CHECK(s.now()->target->path.front() == '/');
  CHECK(s.now()->target->path.find('~') == std::string::npos);
}
