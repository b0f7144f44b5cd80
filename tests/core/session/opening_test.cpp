// Everything that a user may type instead of a checkpoint, and the results.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "core/session/session.h"
#include "core/temporary_folder.h"
#include "core/verbs/plan_file.h"

using namespace shw;

namespace {

namespace fs = std::filesystem;

const std::string kStep = std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_fsdp/ckpt";

std::shared_ptr<const Snapshot> after(Session& session, std::vector<Command> commands) {
  for (Command& command : commands) session.apply(std::move(command));
  session.wait();
  return session.snapshot();
}

bool is_no_witness(const Unjudged& one) {
  return one.what.find("--against names this one") != std::string::npos;
}

}  // namespace

TEST_CASE("the newest complete step is opened, and what was passed over stays known") {
  TemporaryFolder run;
  for (const char* step : {"step_10", "step_9", "step_8"}) fs::copy(kStep, run / step);
  fs::remove(run / "step_10/.metadata");
  Session session;
  auto snapshot =
      after(session, {OpenCommand{run / "@latest-complete", "", run / "step_8"}, CheckCommand{}});
  REQUIRE(snapshot->report != nullptr);
  CHECK(snapshot->options.checkpoint == run / "step_9");
  REQUIRE(snapshot->passed_over.size() == 1);
  CHECK(snapshot->passed_over[0].starts_with("step_10: "));

  snapshot = after(session, {CompareCommand{run / "@latest-complete"}});
  CHECK(snapshot->compared_with == run / "step_9");
  snapshot = after(session, {PlanCommand{"from:" + (run / "@latest-complete")}});
  CHECK(snapshot->options.fill == "from:" + (run / "step_9"));

  snapshot = after(session, {OpenCommand{run / "step_8"}});
  CHECK(snapshot->passed_over.empty());
  snapshot = after(session, {OpenCommand{run / "step_8/@latest"}});
  REQUIRE(snapshot->error.has_value());
  CHECK(snapshot->options.checkpoint == run / "step_8");
}

TEST_CASE("open: paths that are typed from the working folder are shown from the root") {
  TemporaryFolder run;
  for (const char* step : {"step_9", "step_8"}) fs::copy(kStep, run / step);
  fs::create_directory_symlink(run / "step_9", run / "latest");
  const fs::path before = fs::current_path();
  fs::current_path(run.path());
  const std::string here = fs::current_path().string();
  Session session;
  for (const char* typed : {"step_9", "./step_9"}) {
    auto snapshot = after(session, {OpenCommand{typed, "", "step_8"}, CheckCommand{}});
    CHECK_FALSE(snapshot->error.has_value());
    CHECK(snapshot->options.checkpoint == here + "/step_9");
    CHECK(snapshot->options.against == here + "/step_8");
  }
  auto snapshot = after(session, {PlanCommand{"from:step_8"}});
  CHECK(snapshot->options.fill == "from:" + here + "/step_8");
  snapshot = after(session, {OpenCommand{"latest"}});
  CHECK(snapshot->options.checkpoint == here + "/latest");
  snapshot = after(session, {OpenCommand{"no_step"}});
  REQUIRE(snapshot->error.has_value());
  CHECK(snapshot->error->place.file.find("no_step") != std::string::npos);
  fs::current_path(before);
  CHECK(verbs::absolute_path("s3://bucket/a") == "s3://bucket/a");
  CHECK(verbs::absolute_path("").empty());
}

TEST_CASE("a session does not take what is open for a witness of itself") {
  TemporaryFolder run;
  fs::copy(kStep, run / "step_9");
  fs::copy(kStep, run / "copy");
  Session session;
  auto snapshot =
      after(session, {OpenCommand{run / "step_9", "", run / "step_9/"}, CheckCommand{}});
  REQUIRE(snapshot->report != nullptr);
  CHECK(std::ranges::any_of(snapshot->report->unjudged, is_no_witness));
  snapshot = after(session, {OpenCommand{run / "step_9", "", run / "copy"}, CheckCommand{}});
  REQUIRE(snapshot->report != nullptr);
  CHECK(std::ranges::none_of(snapshot->report->unjudged, is_no_witness));
}
