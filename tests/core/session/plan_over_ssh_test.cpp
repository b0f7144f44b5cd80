// Plans of a checkpoint behind ssh, with a stand-in for ssh that runs the command on this machine.
#include <doctest/doctest.h>

#include <filesystem>

#include "core/base/version.h"
#include "core/io/remote/other_host.h"
#include "core/session/command_run.h"
#include "core/verbs/verbs.h"

using namespace shw;

namespace {

// A checkpoint whose only finding was made over there, so that its diagnosis stayed there.
Snapshot checked_over_there() {
  const std::string base = std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_fsdp/ckpt";
  VerbOptions local;
  local.checkpoint = base;
  auto opened = verbs::open(local);
  REQUIRE(opened.has_value());
  Snapshot snapshot;
  snapshot.checkpoint = opened->checkpoint;
  snapshot.options.checkpoint = "ssh://host/runs/step_1";
  snapshot.runs_over_ssh = true;
  CheckReport report;
  report.lacks_diagnoses = true;
  Finding finding;
  finding.rule = "local-saved-as-global";
  finding.subjects = {"optimizer.state.w.exp_avg"};
  finding.cause = "one rank's shard was saved as the whole tensor";
  finding.remedy = Remedy{"retile", false, "Put each survivor where it belongs."};
  report.findings = {finding};
  snapshot.report = std::make_shared<const CheckReport>(report);
  return snapshot;
}

}  // namespace

TEST_CASE("plan: the machine of the checkpoint reads every byte again only when it is asked to") {
  const test::OtherHost host("touch \"$(dirname \"$0\")/called\"\necho '{\"schema\": \"" +
                             std::string(kJsonSchema) +
                             "\", \"error\": {\"message\": \"the disk is gone\"}}'\n");
  Snapshot snapshot = checked_over_there();
  const auto was_called = [&] { return std::filesystem::exists(host.path("called")); };
  for (const PlanCommand& command : {PlanCommand{"", true}, PlanCommand{"zero"}}) {
    auto change = run_plan(snapshot, command, nullptr);
    REQUIRE(change.has_value());
    Snapshot after = snapshot;
    (*change)(after);
    REQUIRE(after.plan != nullptr);
    CHECK(after.plan->undecided.size() == 1);
    CHECK_FALSE(was_called());
  }
  PlanCommand remote;
  remote.on_remote_host = true;
  auto failed = run_plan(snapshot, remote, nullptr);
  CHECK(was_called());
  REQUIRE_FALSE(failed.has_value());  // so that the plan of this machine stays
  CHECK(failed.error().message == "the disk is gone");
  snapshot.runs_over_ssh = false;
  snapshot.why_not_over_ssh = "Shardwright is not installed on that machine.";
  failed = run_plan(snapshot, remote, nullptr);
  REQUIRE_FALSE(failed.has_value());
  CHECK(failed.error().advice == snapshot.why_not_over_ssh);
}
