// The panel for reviewing a repair, driven without a window.
#include <doctest/doctest.h>

#include "core/session/plan_edits.h"
#include "make/snapshots.h"
#include "views/driver.h"

using namespace shw;

namespace {

template <class T>
const T* sole(const std::vector<Command>& commands) {
  return commands.size() == 1 ? std::get_if<T>(&commands[0]) : nullptr;
}

// Adds the plan's edits as the session does.
std::shared_ptr<Snapshot> with_edits(std::shared_ptr<Snapshot> snapshot, DisabledSteps off = {},
                                     int edits = 1) {
  PlanEdit edit;
  edit.what = "planned";
  edit.whole = edit.plan = snapshot->plan;
  edit.off = off;
  edit.off.resize(snapshot->plan->operations.size(), false);
  edit.json = "{\"plan\": 1}";
  edit.hash = "0123456789abcdef";
  std::shared_ptr<const PlanEdits> all;
  for (int i = 0; i < edits; ++i) all = with_edit(all.get(), edit);
  snapshot->edits = all;
  return make::with_target(snapshot);
}

std::shared_ptr<Snapshot> many_steps(std::size_t count) {
  auto snapshot = make::demo_planned();
  auto plan = std::make_shared<Plan>(*snapshot->plan);
  Operation step = plan->operations.front();
  plan->operations.assign(count, step);
  for (int i = 0; i < 40; ++i) plan->operations[0].subjects.push_back("layer." + std::to_string(i));
  snapshot->plan = plan;
  return with_edits(snapshot);
}

}  // namespace

TEST_CASE("every step of a plan can be switched off and on in its line") {
  Driver driver(with_edits(make::demo_planned(), {false, true}));
  driver.desk.plan_open = true;
  auto commands = driver.click("plan/step/1");
  REQUIRE(sole<StepCommand>(commands));
  CHECK(sole<StepCommand>(commands)->step == 0);
  CHECK_FALSE(sole<StepCommand>(commands)->on);
  commands = driver.click("plan/step/2");
  REQUIRE(sole<StepCommand>(commands));
  CHECK(sole<StepCommand>(commands)->on);
}

TEST_CASE("a plan of many steps is drawn in full and scrolls, with what there is to press below") {
  for (ImVec2 size : {ImVec2{960, 540}, ImVec2{1280, 720}}) {
    Driver driver(many_steps(60), size);
    driver.desk.plan_open = true;
    for (int i = 0; i < 4; ++i) driver.frame();
    CHECK(driver.marks.items.contains("plan/step/60"));
    ImVec4 apply = driver.marks.items.at("plan/apply");
    CHECK(apply.w <= size.y);
    CHECK(driver.marks.items.at("plan/step/60").y > size.y);  // further down
  }
}

TEST_CASE("the tensors of a step unfold") {
  Driver driver(many_steps(1));
  driver.desk.plan_open = true;
  CHECK(driver.click("plan/tensors/1").empty());
  CHECK(driver.desk.plan.unfolded.contains(0));
  driver.frame();
  CHECK(driver.click("plan/tensors/1").empty());
  CHECK(driver.desk.plan.unfolded.empty());
}

TEST_CASE("undo and redo of a plan have keys, and none where there is nothing to take back") {
  Driver once(with_edits(make::demo_planned()));
  once.desk.plan_open = true;
  once.frame();
  CHECK(once.frame({{Key::kZ, true, false, false}}).empty());
}

TEST_CASE("Ctrl+Z takes an edit back, and Ctrl+Shift+Z as well as Ctrl+Y brings it again") {
  auto snapshot = with_edits(make::demo_planned(), {}, 3);
  auto edits = std::make_shared<PlanEdits>(*snapshot->edits);
  edits->now = 1;
  snapshot->edits = edits;
  Driver driver(snapshot);
  driver.desk.plan_open = true;
  driver.frame();
  CHECK(sole<PlanUndoCommand>(driver.frame({{Key::kZ, true, false, false}})));
  CHECK(sole<PlanRedoCommand>(driver.frame({{Key::kZ, true, true, false}})));
  CHECK(sole<PlanRedoCommand>(driver.frame({{Key::kY, true, false, false}})));
  CHECK(sole<PlanUndoCommand>(driver.click("plan/undo")));
  CHECK(sole<PlanRedoCommand>(driver.click("plan/redo")));
}

TEST_CASE("a plan is saved to a file and loaded from one") {
  Driver driver(with_edits(make::demo_planned()));
  driver.desk.plan_open = true;
  CHECK(driver.click("plan/file-Save").empty());  // no name, no file
  driver.desk.plan.file = "~/plan.json";
  auto commands = driver.click("plan/file-Save");
  REQUIRE(sole<SavePlanCommand>(commands));
  CHECK(sole<SavePlanCommand>(commands)->path == "~/plan.json");
  commands = driver.click("plan/file-Load");
  REQUIRE(sole<LoadPlanCommand>(commands));
  CHECK(sole<LoadPlanCommand>(commands)->path == "~/plan.json");
}

TEST_CASE("a plan is edited as text where it is short, and never while nobody asked") {
  Driver driver(with_edits(make::demo_planned()));
  driver.desk.plan_open = true;
  driver.frame();
  driver.frame();
  CHECK_FALSE(driver.marks.items.contains("plan/text"));
  driver.click("plan/as-text");
  auto commands = driver.click("plan/text-use");
  REQUIRE(sole<EditPlanCommand>(commands));
  CHECK(sole<EditPlanCommand>(commands)->json == "{\"plan\": 1}");
}

TEST_CASE("the place that a repair would go to is asked about as soon as it is typed") {
  auto snapshot = with_edits(make::demo_planned());
  Driver driver(snapshot);
  driver.desk.plan_open = true;
  auto commands = driver.frame();
  REQUIRE(sole<TargetCommand>(commands));
  CHECK(sole<TargetCommand>(commands)->path.empty());
  CHECK(driver.frame().empty());  // once
  driver.desk.out = " there ";
  commands = driver.frame();
  REQUIRE(sole<TargetCommand>(commands));
  CHECK(sole<TargetCommand>(commands)->path == "there");
  // An existing output folder cannot be overwritten.
  auto refused = std::make_shared<Snapshot>(*snapshot);
  verbs::RepairTarget target{"there"};
  target.refused = Error{ErrorKind::kUsage, "already exists, and is never replaced"};
  refused->target = std::make_shared<const verbs::RepairTarget>(target);
  driver.show(refused);
  driver.frame();
  driver.frame();
  CHECK_FALSE(driver.marks.items.contains("plan/apply"));
  CHECK(driver.frame({{Key::kEnter, true, false, false}}).empty());
}

TEST_CASE("a dry run is asked for by its button and its key") {
  Driver driver(with_edits(make::demo_planned()));
  driver.desk.plan_open = true;
  driver.frame();
  CHECK(sole<DryRunCommand>(driver.frame({{Key::kD, true, false, false}})));
  CHECK(sole<DryRunCommand>(driver.click("plan/out-Dry run")));
}

TEST_CASE("plan/over-there: offered for findings whose diagnosis stayed on another machine") {
  auto snapshot = with_edits(make::demo_planned());
  auto plan = std::make_shared<Plan>(*snapshot->plan);
  Finding finding;
  finding.rule = "local-saved-as-global";
  finding.remedy = Remedy{"retile", false, "Put each survivor where it belongs."};
  plan->undecided = {finding};
  snapshot->plan = plan;
  auto report = std::make_shared<CheckReport>(*snapshot->report);
  report->lacks_diagnoses = true;
  snapshot->report = report;
  const auto offer_in = [](const std::shared_ptr<Snapshot>& shown) {
    Driver driver(shown);
    driver.desk.plan_open = true;
    for (int i = 0; i < 3; ++i) driver.frame();
    if (!driver.marks.items.contains("plan/over-there")) return std::vector<Command>{};
    return driver.click("plan/over-there");
  };
  CHECK(offer_in(snapshot).empty());
  snapshot->runs_over_ssh = true;
  const auto commands = offer_in(snapshot);
  REQUIRE(sole<PlanCommand>(commands));
  CHECK(sole<PlanCommand>(commands)->on_remote_host);
  snapshot->options.fill = "from:/here/step_1";
  CHECK(offer_in(snapshot).empty());
}
