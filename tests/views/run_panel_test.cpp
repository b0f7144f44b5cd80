// The table of a run's steps.
#include <doctest/doctest.h>

#include "make/snapshots.h"
#include "views/driver.h"
#include "views/verdict.h"

using namespace shw;

namespace {

std::shared_ptr<Snapshot> three_steps() {
  auto snapshot = std::make_shared<Snapshot>();
  auto run = std::make_shared<verbs::RunSteps>();
  run->path = run->asked = snapshot->options.checkpoint = "/runs/7";
  for (const char* name : {"step_3000", "step_2000", "step_1000"}) {
    verbs::RunStep step;
    step.name = name;
    step.path = run->path + "/" + name;
    step.is_known = step.is_compared = true;
    step.verdict = Verdict::kClean;
    step.headline = "No finding: 12 tensors";
    step.files = 4;
    step.bytes = 1'000'000;
    step.time = "2026-11-27 05:31";
    run->steps.push_back(step);
  }
  run->steps[0].verdict = Verdict::kFindings;
  run->steps[0].is_error = true;
  run->steps[0].files_lost = 1;
  run->steps[0].headline = "Will not load: 1 cause, 3 tensors, 1 file";
  snapshot->run = run;
  return snapshot;
}

template <class C>
const C* first_run_command(const std::vector<Command>& commands) {
  for (const Command& command : commands) {
    if (const auto* found = std::get_if<C>(&command)) return found;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("run: a click opens a step") {
  Driver driver(three_steps());
  driver.frame();
  auto commands = driver.click("run/step/1");
  const auto* open = first_run_command<OpenCommand>(commands);
  REQUIRE(open != nullptr);
  CHECK(open->path == "/runs/7/step_2000");
}

TEST_CASE("run: Ctrl and Enter open a step in a new tab") {
  Driver driver(three_steps());
  driver.frame();
  driver.frame({{Key::kDown}});
  auto commands = driver.frame({{Key::kEnter, true, false, false}});
  CHECK(first_run_command<OpenCommand>(commands) == nullptr);
  REQUIRE(driver.tab_request);
  REQUIRE(driver.tab_request->open);
  CHECK(driver.tab_request->open->path == "/runs/7/step_2000");
}

TEST_CASE("run: keys choose a step, and Shift and Enter compare it with the step before") {
  Driver driver(three_steps());
  driver.frame();
  driver.frame({{Key::kDown}});
  auto commands = driver.frame({{Key::kEnter, false, true, false}});
  const auto* open = first_run_command<OpenCommand>(commands);
  REQUIRE(open != nullptr);
  CHECK(open->path == "/runs/7/step_2000");
  const auto* compare = first_run_command<CompareCommand>(commands);
  REQUIRE(compare != nullptr);
  CHECK(compare->path == "/runs/7/step_1000");
}

TEST_CASE("run: steps that are not examined yet are asked for once") {
  auto snapshot = three_steps();
  auto run = std::make_shared<verbs::RunSteps>(*snapshot->run);
  run->steps[2].is_known = false;
  snapshot->run = run;
  Driver driver(snapshot);
  CHECK(first_run_command<RunCommand>(driver.frame()) != nullptr);
  CHECK(first_run_command<RunCommand>(driver.frame()) == nullptr);
}

TEST_CASE("run: the banner counts steps by verdict") {
  const VerdictText text = verdict_of(*three_steps(), {}, {});
  CHECK(text.title == "3 steps: 1 with errors, 2 without a finding");
  CHECK(text.tone == Tone::kBad);
}

TEST_CASE("run: entries beyond the limit and a folder that is gone leave no calm banner") {
  auto snapshot = three_steps();
  auto run = std::make_shared<verbs::RunSteps>(*snapshot->run);
  run->steps.erase(run->steps.begin());
  snapshot->run = run;
  CHECK(verdict_of(*snapshot, {}, {}).tone == Tone::kOk);
  run->not_read = 240;
  CHECK(verdict_of(*snapshot, {}, {}).tone != Tone::kOk);
  CHECK(verdict_of(*snapshot, {}, {}).title.find("240 older entries") != std::string::npos);
  run->not_read = 0;
  run->error = Error{ErrorKind::kIo, "cannot open it", {"/runs/7"}, ""};
  CHECK(verdict_of(*snapshot, {}, {}).tone == Tone::kBad);
  CHECK(verdict_of(*snapshot, {}, {}).detail.find("/runs/7") != std::string::npos);
  run->steps.clear();
  const VerdictText gone = verdict_of(*snapshot, {}, {});
  CHECK(gone.tone == Tone::kBad);
  CHECK(gone.title.find("0 steps") == std::string::npos);
  Driver driver(snapshot);
  for (Key key : {Key::kDown, Key::kUp, Key::kEnter}) CHECK(driver.frame({{key}}).empty());
}

TEST_CASE("disk: files that changed are said in the banner with the way to open them again") {
  auto snapshot = make::healthy();
  snapshot->changed_on_disk = "1 file was written (__0_0.distcp)";
  const VerdictText text = verdict_of(*snapshot, {}, *make_digest(snapshot)->about);
  CHECK(text.tone == Tone::kWarn);
  CHECK(text.unjudged.find("__0_0.distcp") != std::string::npos);
  CHECK(text.next == Action::kReload);
}

TEST_CASE("run: no text of the table is cut off or is on another one") {
  for (ImVec2 size : {ImVec2{960, 560}, ImVec2{1440, 900}, ImVec2{2560, 1440}}) {
    Driver driver(three_steps(), size);
    driver.marks.wants_texts = true;
    driver.frame();
    driver.frame();
    CHECK(driver.text_faults().empty());
  }
}
