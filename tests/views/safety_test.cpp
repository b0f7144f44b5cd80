// A single wrong key or click never writes, undoes or stops anything.
#include <doctest/doctest.h>

#include "make/snapshots.h"
#include "views/driver.h"

using namespace shw;

namespace {

constexpr KeyPress kCtrlEnter{Key::kEnter, true, false, false};

bool writes(const std::vector<Command>& commands) {
  for (const Command& command : commands) {
    const std::string text = to_text(command);
    if (text.starts_with("repair") || text.starts_with("undo") || text.starts_with("commit"))
      return true;
  }
  return false;
}

std::vector<Command> by_palette(Driver& driver, Action action, bool by_enter) {
  driver.frame({key_of(Action::kPalette)});
  driver.frame();
  driver.frame();
  std::vector<Command> all = driver.type(row_of(action).name);
  const std::string row = std::string("palette/") + row_of(action).name;
  for (Command& command : by_enter ? driver.frame({{Key::kEnter}}) : driver.click(row))
    all.push_back(std::move(command));
  driver.frame();
  return all;
}

std::shared_ptr<Snapshot> repaired_in_place() {
  auto snapshot = std::make_shared<Snapshot>(*make::demo_planned());
  snapshot->can_undo = true;
  return snapshot;
}

}  // namespace

TEST_CASE("a repair begins only with its plan in sight") {
  for (Action action : {Action::kApply, Action::kApplyInPlace}) {
    CAPTURE(row_of(action).name);
    for (bool by_enter : {true, false}) {
      Driver driver(make::demo_planned());
      driver.frame();
      CHECK_FALSE(writes(by_palette(driver, action, by_enter)));
      CHECK(driver.desk.plan_open);
      CHECK_FALSE(driver.desk.palette_open);
      // The palette over the panel does not write either.
      CHECK_FALSE(writes(by_palette(driver, action, by_enter)));
    }
  }
  Driver driver(make::demo_planned());
  driver.frame();
  CHECK_FALSE(writes(driver.frame({kCtrlEnter})));
  CHECK(driver.desk.plan_open);
  driver.frame();
  CHECK(writes(driver.frame({kCtrlEnter})));
}

TEST_CASE("undo and commit ask first, and no key says yes") {
  for (Action action : {Action::kUndo, Action::kCommit}) {
    CAPTURE(row_of(action).name);
    Driver driver(repaired_in_place());
    driver.frame();
    CHECK_FALSE(writes(by_palette(driver, action, true)));
    REQUIRE(driver.desk.asked == action);
    for (KeyPress key : {KeyPress{Key::kEnter}, KeyPress{Key::kSpace}, kCtrlEnter})
      CHECK_FALSE(writes(driver.frame({key})));
    REQUIRE(driver.desk.asked == action);
    driver.frame({{Key::kEscape}});
    CHECK_FALSE(driver.desk.asked.has_value());
    by_palette(driver, action, true);
    CHECK_FALSE(writes(driver.click("question/no")));
    CHECK_FALSE(driver.desk.asked.has_value());
    by_palette(driver, action, true);
    CHECK(writes(driver.click("question/yes")));
    CHECK_FALSE(driver.desk.asked.has_value());
  }
}

TEST_CASE("quitting asks where a job writes, and nowhere else") {
  for (bool by_window : {false, true}) {
    for (bool is_writing : {false, true}) {
      CAPTURE(by_window);
      CAPTURE(is_writing);
      JobState job;
      job.running = true;
      job.title = "Repairing";
      job.writes = is_writing;
      Driver driver(make::demo_planned());
      driver.show(make::demo_planned(), job);
      driver.frame();
      if (by_window) driver.desk.quit_wanted = true;
      driver.frame(by_window ? std::vector<KeyPress>{} : std::vector{key_of(Action::kQuit)});
      CHECK(driver.desk.quit != is_writing);
      CHECK(driver.desk.asked.has_value() == is_writing);
      if (!is_writing) continue;
      driver.frame();
      CHECK(driver.text_faults().empty());
      driver.click("question/yes");
      CHECK(driver.desk.quit);
    }
  }
}

TEST_CASE("a question whose job has ended goes away by itself") {
  JobState job;
  job.running = job.writes = true;
  job.title = "Repairing";
  Driver driver(make::demo_planned());
  driver.show(make::demo_planned(), job);
  driver.frame();
  driver.frame({key_of(Action::kQuit)});
  REQUIRE(driver.desk.asked.has_value());
  driver.show(make::demo_planned());
  driver.frame();
  driver.frame();
  CHECK_FALSE(driver.desk.asked.has_value());
  CHECK_FALSE(driver.desk.quit);
}

TEST_CASE(
    "a stopped repair offers to be resumed or discarded, and names no command for a terminal") {
  auto snapshot = std::make_shared<Snapshot>(*make::demo_planned());
  snapshot->error = Error{ErrorKind::kCancelled,
                          "stopped on request",
                          {},
                          "go on with `shardwright resume /runs/7/step_9000-repaired`"};
  {
    Driver driver(snapshot);
    driver.frame();
    CHECK_FALSE(writes(driver.click("job/left")));
    CHECK(driver.desk.plan_open);
    driver.marks.wants_texts = true;
    driver.frame();
    driver.frame();
    CHECK_FALSE(driver.marks.texts.empty());
    for (const TextMark& mark : driver.marks.texts)
      CHECK(mark.text.find("shardwright resume") == std::string::npos);
  }
  snapshot->error->advice.clear();  // a check that was stopped leaves nothing
  {
    Driver calm(snapshot);
    calm.frame();
    CHECK_FALSE(calm.marks.items.contains("job/left"));
  }
  snapshot->error.reset();
  verbs::RepairTarget target;
  target.half_made = {"/runs/7/step_9000-repaired.shardwright-partial-7"};
  snapshot->target = std::make_shared<const verbs::RepairTarget>(target);
  Driver of_another_day(snapshot);
  of_another_day.frame();
  CHECK(of_another_day.marks.items.contains("job/left"));
}

TEST_CASE("blanks around the name of the result are not part of it, and cancel forgets it") {
  Driver driver(make::demo_planned());
  driver.desk.plan_open = true;
  driver.desk.out = "  /runs/7/mended ";
  driver.frame();
  const std::vector<Command> commands = driver.frame({kCtrlEnter});
  REQUIRE_FALSE(commands.empty());
  CHECK(to_text(commands.front()).ends_with("out /runs/7/mended"));
  driver.desk.plan_open = true;
  driver.frame();
  driver.click("plan/close");
  CHECK(driver.desk.out.empty());
}

TEST_CASE("safety: every byte of another machine is read only after a question with the amount") {
  auto snapshot = std::make_shared<Snapshot>(*make::healthy());
  snapshot->options.checkpoint = "ssh://host/runs/7/step_9000";
  {
    Driver driver(snapshot);
    CHECK(driver.frame({key_of(Action::kCheckData)}).empty());
    for (int i = 0; i < 3; ++i) driver.frame();
    REQUIRE(driver.desk.asked == Action::kCheckData);
    const auto commands = driver.click("question/yes");
    REQUIRE(commands.size() == 1);
    CHECK(std::get<CheckCommand>(commands[0]).depth == Depth::kData);
    driver.frame();
    CHECK_FALSE(driver.desk.asked.has_value());
  }
  {
    Driver local(make::healthy());
    CHECK(local.frame({key_of(Action::kCheckData)}).size() == 1);
  }
  auto compared = std::make_shared<Snapshot>(*make::healthy());
  compared->reference = compared->checkpoint;
  compared->options.against = "ssh://host/runs/7/step_8000";
  Driver against(compared);
  CHECK(against.frame({key_of(Action::kCheckData)}).empty());
  CHECK(against.desk.asked == Action::kCheckData);
}
