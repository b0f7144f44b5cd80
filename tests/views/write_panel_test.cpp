// The panel that writes the checkpoint in another form.
#include <doctest/doctest.h>

#include "make/snapshots.h"
#include "views/driver.h"
#include "views/verdict.h"

using namespace shw;

TEST_CASE("write panel: what is chosen is planned, and the plan is shown before it is written") {
  Driver driver(make::healthy());
  driver.frame({key_of(Action::kWriteAs)});
  for (int i = 0; i < 3; ++i) driver.frame();
  REQUIRE(driver.desk.write.open);
  driver.type("dp=4");
  driver.click("write/as/dcp");
  driver.click("write/dtype/bfloat16");
  driver.click("write/weights-only");
  const auto commands = driver.click("write/plan");
  REQUIRE(commands.size() == 1);
  CHECK(to_text(commands[0]) == "write-as dcp mesh dp=4 dtype bfloat16 weights-only");
  CHECK_FALSE(driver.desk.write.open);
  CHECK(driver.desk.plan_open);
}

TEST_CASE("write panel: formats without chunks take no mesh") {
  Driver driver(make::healthy());
  driver.frame({key_of(Action::kWriteAs)});
  for (int i = 0; i < 3; ++i) driver.frame();
  driver.type("dp=4");
  driver.click("write/as/safetensors");
  driver.frame();
  CHECK_FALSE(driver.marks.items.contains("write/mesh"));
  const auto commands = driver.click("write/plan");
  REQUIRE(commands.size() == 1);
  CHECK(to_text(commands[0]) == "write-as safetensors");
}

TEST_CASE("write panel: an adapter opens what is computed with it first") {
  auto snapshot = std::make_shared<Snapshot>(*make::healthy());
  Driver driver(snapshot);
  driver.desk.write.open = true;
  driver.desk.write.combined = "merged";
  driver.desk.write.inputs = " /runs/7/adapter ";
  driver.desk.write.quantised = "numbers";
  driver.frame();
  driver.frame();
  const auto commands = driver.click("write/plan");
  REQUIRE(commands.size() == 3);
  CHECK(std::get<OpenCommand>(commands[0]).path ==
        snapshot->options.checkpoint + "/@dequantised/@merged=/runs/7/adapter");
  CHECK(std::holds_alternative<CheckCommand>(commands[1]));
  CHECK(std::holds_alternative<WriteAsCommand>(commands[2]));
}

TEST_CASE("write panel: other checkpoints open the average first") {
  auto snapshot = std::make_shared<Snapshot>(*make::healthy());
  Driver driver(snapshot);
  driver.desk.write.open = true;
  driver.desk.write.combined = "average";
  driver.desk.write.inputs = "/runs/7/step_1, /runs/7/step_2";
  driver.frame();
  driver.frame();
  const auto commands = driver.click("write/plan");
  REQUIRE(commands.size() == 3);
  CHECK(std::get<OpenCommand>(commands[0]).path ==
        snapshot->options.checkpoint + "/@average=/runs/7/step_1,/runs/7/step_2");
}

TEST_CASE("write panel: a path that would be read as several is refused, and nothing is opened") {
  Driver driver(make::healthy());
  driver.desk.write.open = true;
  driver.desk.write.combined = "merged";
  driver.desk.write.inputs = "/runs/7/a,b";
  driver.frame();
  driver.frame();
  CHECK(driver.click("write/plan").empty());
  CHECK(driver.desk.toast.find("comma") != std::string::npos);
  CHECK(driver.desk.write.open);
}

TEST_CASE("write panel: differences, adapters and quantised weights open what is computed") {
  struct {
    const char *with, *quantised, *path;
  } cases[] = {{"delta", "same", "/@delta-to=/models/b"},
               {"applied", "same", "/@applied=/models/b"},
               {"adapter", "same", "/@adapter:16=/models/b"},
               {"merged", "numbers", "/@dequantised/@merged=/models/b"},
               {"merged", "fp8-block", "/@merged=/models/b/@quantised:fp8-block"},
               {"same", "mxfp4", "/@quantised:mxfp4"}};
  for (const auto& each : cases) {
    CAPTURE(each.path);
    auto snapshot = std::make_shared<Snapshot>(*make::healthy());
    Driver driver(snapshot);
    driver.desk.write.open = true;
    for (int i = 0; i < 3; ++i) driver.frame();
    driver.click(std::string("write/with/") + each.with);
    driver.click(std::string("write/quantised/") + each.quantised);
    driver.desk.write.inputs = "/models/b";
    for (int i = 0; i < 3; ++i) driver.frame();
    const auto commands = driver.click("write/plan");
    REQUIRE(commands.size() == 3);
    CHECK(std::get<OpenCommand>(commands[0]).path == snapshot->options.checkpoint + each.path);
  }
}

TEST_CASE(
    "write panel: a combination without a path, and a difference to be quantised, are refused") {
  for (const char* quantised : {"", "fp8-block"}) {
    Driver driver(make::healthy());
    driver.desk.write.open = true;
    driver.desk.write.combined = "delta";
    driver.desk.write.quantised = quantised;
    if (*quantised != 0) driver.desk.write.inputs = "/models/b";
    driver.frame();
    driver.frame();
    CHECK(driver.click("write/plan").empty());
    CHECK(driver.desk.write.open);
  }
}

TEST_CASE("write panel: while a job runs nothing is planned") {
  Driver driver(make::healthy());
  JobState job;
  job.running = true;
  driver.show(make::healthy(), job);
  driver.desk.write.open = true;
  driver.frame();
  driver.frame();
  CHECK_FALSE(driver.marks.items.contains("write/plan"));
  CHECK(driver.marks.items.contains("write/close"));
}

TEST_CASE("write panel: the bar tells what was written, and whether it is proved") {
  auto snapshot = std::make_shared<Snapshot>(*make::healthy());
  auto plan = std::make_shared<Plan>();
  plan->format = "safetensors";
  snapshot->plan = plan;
  PlanEdit executed;
  executed.plan = plan;
  snapshot->executed = std::make_shared<const PlanEdit>(executed);
  auto result = std::make_shared<RepairResult>();
  result->output = "/runs/7/step_9000-safetensors";
  snapshot->repaired = result;
  VerdictText text = verdict_of(*snapshot, {}, {});
  CHECK(text.tone == Tone::kUnknown);
  CHECK(text.next == Action::kVerify);
  CHECK(text.title.find("epaired") == std::string::npos);

  auto verified = std::make_shared<VerifyReport>();
  verified->outcome = VerifyReport::Outcome::kProved;
  snapshot->verified = verified;
  text = verdict_of(*snapshot, {}, {});
  CHECK(text.tone == Tone::kOk);
  CHECK(text.next == Action::kOpenRepaired);
  CHECK(text.detail.starts_with(result->output));
  const std::string title = text.title;
  snapshot->plan = nullptr;  // a later check ends it
  CHECK(verdict_of(*snapshot, {}, {}).title == title);
  snapshot->plan = plan;
  result->lossless = false;
  text = verdict_of(*snapshot, {}, {});
  CHECK(text.tone == Tone::kWarn);
  CHECK(text.detail.find("nothing is lost") == std::string::npos);
  auto left = std::make_shared<std::vector<Finding>>();
  left->emplace_back();
  left->back().rule = "coverage-gap";
  left->back().severity = Severity::kError;
  snapshot->result_findings = left;
  CHECK(verdict_of(*snapshot, {}, {}).tone == Tone::kBad);
  verified = std::make_shared<VerifyReport>();
  verified->outcome = VerifyReport::Outcome::kBroken;
  snapshot->verified = verified;
  CHECK(verdict_of(*snapshot, {}, {}).tone == Tone::kBad);
}

TEST_CASE("write panel: in a low window it opens at its top, with the keyboard in the field") {
  const auto first_button = [](bool by_key) {
    Driver driver(make::healthy(), {960, 540});
    if (by_key) driver.frame({key_of(Action::kWriteAs)});
    driver.desk.write.open = true;
    if (!by_key) driver.desk.write.frames = 10;  // nothing has the focus, so nothing scrolls
    for (int i = 0; i < 8; ++i) driver.frame();
    const float y = driver.marks.items.at("write/as/same").y;
    driver.type("dp=4");
    CHECK(driver.desk.write.chosen.mesh == (by_key ? "dp=4" : ""));
    return y;
  };
  CHECK(first_button(true) == first_button(false));
}
