// The panel for spec and reference.
#include <doctest/doctest.h>

#include "make/snapshots.h"
#include "views/driver.h"
#include "views/imgui_versions.h"
#include "views/verdict.h"

using namespace shw;

TEST_CASE("a spec that is said opens the checkpoint again with it, checked as deep as before") {
  auto snapshot = std::make_shared<Snapshot>(*make::healthy());
  snapshot->options.spec.clear();
  snapshot->options.mesh = "dp=2,tp=2";
  auto report = std::make_shared<CheckReport>(*snapshot->report);
  report->depth = Depth::kData;
  snapshot->report = report;
  Driver driver(snapshot);
  driver.frame({key_of(Action::kExpect)});
  for (int i = 0; i < 3; ++i) driver.frame();
  CHECK_FALSE(driver.marks.items.contains("expect/use"));  // nothing is said yet
  CHECK_FALSE(driver.marks.items.contains("expect/forget"));
  driver.type("/runs/7/spec.json");
  auto commands = driver.click("expect/use");
  REQUIRE(commands.size() == 2);
  const auto& open = std::get<OpenCommand>(commands[0]);
  CHECK(open.path == snapshot->options.checkpoint);
  CHECK(open.spec == "/runs/7/spec.json");
  CHECK(open.mesh == "dp=2,tp=2");
  CHECK(std::get<CheckCommand>(commands[1]).depth == Depth::kData);
  CHECK_FALSE(driver.desk.panel_state.expect_open);
}

TEST_CASE("what was said of the expectation is in its lines, and is taken back") {
  auto snapshot = std::make_shared<Snapshot>(*make::demo_planned());
  snapshot->options.spec = "/runs/7/spec.json";
  snapshot->options.against = "/runs/7/step_8000";
  Driver driver(snapshot);
  driver.frame({key_of(Action::kExpect)});
  for (int i = 0; i < 3; ++i) driver.frame();
  CHECK(driver.desk.panel_state.expect_spec == "/runs/7/spec.json");
  CHECK(driver.desk.panel_state.expect_against == "/runs/7/step_8000");
  auto commands = driver.click("expect/forget");
  REQUIRE(commands.size() == 2);
  CHECK(std::get<OpenCommand>(commands[0]).spec.empty());
  CHECK(std::get<OpenCommand>(commands[0]).against.empty());
  CHECK_FALSE(std::get<OpenCommand>(commands[0]).tensor.empty());  // the selected tensor
}

TEST_CASE("while something writes nothing is opened again, whatever is said") {
  Driver driver(make::demo_planned());
  JobState job;
  job.running = true;
  driver.show(make::demo_planned(), job);
  driver.desk.panel_state.expect_open = true;
  driver.desk.panel_state.expect_spec = "/runs/7/spec.json";
  driver.frame();
  driver.frame();
  CHECK_FALSE(driver.marks.items.contains("expect/use"));
  CHECK(driver.marks.items.contains("expect/close"));
}

TEST_CASE("the desk names what was not checked without the options of a terminal") {
  CHECK(with_desktop_terms("shapes (--spec or --against); values (--data)") ==
        "shapes (a spec or another checkpoint); values (every byte read)");
  CHECK(with_desktop_terms("--against a copy of the same step") == "a copy of the same step");
  CHECK(with_desktop_terms("--against an earlier step") == "an earlier step");
  CHECK(with_desktop_terms("--mesh, or mesh and placements in --spec") ==
        "the mesh, or mesh and placements in a spec");
  for (const make::State& state : make::all_states()) {
    CAPTURE(state.name);
    CHECK(verdict_of(*state.snapshot, {}, {}).unjudged.find("--") == std::string::npos);
  }
}
