// A stopped repair: its card, and what Resume and Discard ask.
#include <doctest/doctest.h>

#include "core/base/words.h"
#include "make/snapshots.h"
#include "views/driver.h"

using namespace shw;

namespace {

std::vector<Command> answer(Driver& driver, const char* button, bool yes) {
  CHECK(driver.click(button).empty());
  for (int i = 0; i < 3; ++i) driver.frame();
  return driver.click(yes ? "question/yes" : "question/no");
}

}  // namespace

TEST_CASE("stopped: the card is in every view, with or without a plan, findings or a report") {
  std::vector<std::shared_ptr<Snapshot>> views = {make::healthy(), make::demo(),
                                                  make::demo_planned(), make::damaged(),
                                                  make::demo_repaired(true)};
  auto unchecked = std::make_shared<Snapshot>(*make::healthy());
  unchecked->report = nullptr;
  views.push_back(unchecked);
  views.push_back(make::with_values(make::healthy()));
  for (const auto& view : views) {
    {
      Driver without(view);
      without.frame();
      CHECK_FALSE(without.marks.items.contains("stopped/resume"));
    }
    for (bool shows_summary : {false, true}) {
      Driver driver(make::with_stopped_run(std::make_shared<Snapshot>(*view)));
      driver.desk.summary_open = shows_summary;
      driver.frame();
      driver.frame();
      CHECK(driver.marks.items.contains("stopped/resume"));
      CHECK(driver.marks.items.contains("stopped/discard"));
    }
  }
}

TEST_CASE("stopped: in a folder of steps the card opens what is made of, or discards it") {
  auto steps = make::with_stopped_run(make::run_of_steps(3, 2, false));
  Driver driver(steps);
  driver.frame();
  driver.frame();
  CHECK_FALSE(driver.marks.items.contains("stopped/resume"));
  const auto opened = driver.click("stopped/open");
  REQUIRE(opened.size() == 2);
  CHECK(std::get<OpenCommand>(opened[0]).path == first_stopped_run(*steps)->checkpoint);
  const auto discarded = answer(driver, "stopped/discard", true);
  REQUIRE(discarded.size() == 1);
  CHECK(std::holds_alternative<RollBackCommand>(discarded[0]));
}

TEST_CASE("stopped: Resume shows the plan of the journal, and asks") {
  auto snapshot = make::with_stopped_run(make::demo_planned());
  verbs::StoppedRuns runs = *snapshot->stopped;
  auto plan = std::make_shared<Plan>(*snapshot->plan);
  plan->operations.resize(1);
  plan->operations[0].text = "mask 4 elements of the journal";
  runs.runs[0].plan = plan;
  snapshot->stopped = std::make_shared<const verbs::StoppedRuns>(runs);
  Driver driver(snapshot, {1440, 900}, 1);
  driver.frame();
  CHECK(answer(driver, "stopped/resume", false).empty());
  driver.click("stopped/resume");
  for (int i = 0; i < 3; ++i) driver.frame();
  REQUIRE(driver.desk.asked == Action::kResume);
  const std::string& question = driver.desk.asked_text;
  CHECK(question.find("mask 4 elements of the journal") != std::string::npos);
  CHECK(question.find("zeros") != std::string::npos);
  CHECK(question.find(runs.runs[0].output) != std::string::npos);
  CHECK(question.find("12 files") != std::string::npos);
  CHECK(driver.text_faults().empty());
  const auto commands = driver.click("question/yes");
  REQUIRE(commands.size() == 2);
  CHECK(std::get<ResumeCommand>(commands[0]).folder == runs.runs[0].folder);
  CHECK(std::holds_alternative<VerifyCommand>(commands[1]));
}

TEST_CASE("stopped: Discard asks with the folder and its bytes, and about that folder alone") {
  auto snapshot = make::with_stopped_run(make::healthy());
  const verbs::StoppedRun run = *first_stopped_run(*snapshot);
  Driver driver(snapshot);
  CHECK(answer(driver, "stopped/discard", false).empty());
  const auto commands = answer(driver, "stopped/discard", true);
  REQUIRE(commands.size() == 1);
  CHECK(std::get<RollBackCommand>(commands[0]).folder == run.folder);
  driver.click("stopped/discard");
  CHECK(driver.desk.asked_text.find(run.folder) != std::string::npos);
  CHECK(driver.desk.asked_text.find(human_bytes(run.bytes)) != std::string::npos);
  auto other = std::make_shared<Snapshot>(*snapshot);
  verbs::StoppedRuns runs = *snapshot->stopped;
  runs.runs[0].folder += "8";
  other->stopped = std::make_shared<const verbs::StoppedRuns>(runs);
  driver.show(other);
  driver.frame();
  CHECK_FALSE(driver.desk.asked.has_value());
}

TEST_CASE("stopped: what a process works on, and what has changed, is not resumed") {
  auto snapshot = make::with_stopped_run(make::healthy());
  verbs::StoppedRuns runs = *snapshot->stopped;
  const auto items_of = [&] {
    auto shown = std::make_shared<Snapshot>(*snapshot);
    shown->stopped = std::make_shared<const verbs::StoppedRuns>(runs);
    Driver driver(shown);
    driver.frame();
    driver.frame();
    return std::pair(driver.marks.items.contains("stopped/resume"),
                     driver.marks.items.contains("stopped/discard"));
  };
  CHECK(items_of() == std::pair(true, true));
  runs.runs[0].not_resumable = Error{ErrorKind::kDamaged, "has changed", {"/runs/7/step_9000/a"}};
  CHECK(items_of() == std::pair(false, true));
  runs.runs[0].in_use = Error{ErrorKind::kUsage, "is being written by a running process"};
  CHECK(items_of() == std::pair(false, false));
}

TEST_CASE("stopped: after a cancel no command for a terminal is named") {
  auto snapshot = make::with_stopped_run(make::demo_planned());
  snapshot->error = Error{ErrorKind::kCancelled,
                          "stopped on request",
                          {},
                          "go on with `shardwright resume /runs/7/step_9000-repaired`"};
  for (bool opens_plan : {false, true}) {
    Driver driver(snapshot);
    driver.frame();
    driver.desk.plan_open = opens_plan;
    for (int i = 0; i < 3; ++i) driver.frame();
    CHECK(driver.drawn_text().find("shardwright resume") == std::string::npos);
    CHECK(driver.marks.items.contains(opens_plan ? "plan/resume" : "stopped/resume"));
  }
}
