// Files on disk besides commands: the steps of a run, and files changed by other processes.
#include <doctest/doctest.h>

#include <filesystem>

#include "core/session/session.h"
#include "core/session/session_state.h"
#include "core/temporary_folder.h"

using namespace shw;
namespace fs = std::filesystem;

namespace {

const std::string kHasExpectedSizes = std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_fsdp/ckpt";

void put_step(const std::string& path) {
  fs::copy(kHasExpectedSizes, path, fs::copy_options::recursive);
}

struct DiskSession {
  TemporaryFolder folder;
  Session session;
  std::shared_ptr<const Snapshot> now() const { return session.snapshot(); }
  void apply(std::vector<Command> commands) {
    session.apply(std::move(commands));
    session.wait();
  }
};

}  // namespace

TEST_CASE("run: a folder of steps opens as a table with the newest step first") {
  DiskSession run;
  put_step(run.folder / "step_900");
  put_step(run.folder / "step_1000");
  put_step(run.folder / "step_1100");
  fs::remove(run.folder / "step_1000/__1_0.distcp");
  fs::remove(run.folder / "step_1100/.metadata");
  run.apply({OpenCommand{run.folder.path()}, CheckCommand{}});
  CHECK_FALSE(run.now()->error.has_value());
  CHECK(run.now()->checkpoint == nullptr);
  REQUIRE(run.now()->run != nullptr);
  run.apply({RunCommand{}});
  const verbs::RunSteps& steps = *run.now()->run;
  REQUIRE(steps.steps.size() == 3);
  CHECK(steps.is_complete());
  CHECK(steps.steps[0].name == "step_1100");
  CHECK_FALSE(steps.steps[0].verdict.has_value());
  CHECK(steps.steps[0].headline.find("Cannot be opened") == 0);
  CHECK(steps.steps[1].files_lost == 1);
  CHECK(steps.steps[1].elements_lost > 0);
  CHECK(steps.steps[1].is_error);
  CHECK(steps.steps[1].is_compared);
  CHECK(steps.steps[1].differs.empty());
  CHECK(steps.steps[2].verdict == Verdict::kClean);
  CHECK(steps.steps[2].files_lost == 0);
}

TEST_CASE("run: a new step is added, and a step that was written again is examined again") {
  DiskSession run;
  put_step(run.folder / "step_1");
  run.apply({OpenCommand{run.folder.path()}, CheckCommand{}});
  run.apply({RunCommand{}});
  const auto revision = run.now()->revision;
  run.apply({RunCommand{}});
  CHECK(run.now()->revision == revision);  // nothing new, so nothing is drawn
  put_step(run.folder / "step_2");
  fs::resize_file(run.folder / "step_1/__0_0.distcp", 10);
  run.apply({RunCommand{}});
  REQUIRE(run.now()->run->steps.size() == 2);
  CHECK(run.now()->run->is_complete());
  CHECK(run.now()->run->steps[0].verdict == Verdict::kClean);
  CHECK(run.now()->run->steps[1].files_lost == 1);
}

TEST_CASE("run: a step opens, and its run stays known") {
  DiskSession run;
  put_step(run.folder / "step_1");
  put_step(run.folder / "step_2");
  run.apply({OpenCommand{run.folder.path()}, CheckCommand{}});
  run.apply({OpenCommand{run.folder / "step_1"}, CheckCommand{}});
  CHECK(run.now()->checkpoint != nullptr);
  REQUIRE(run.now()->run != nullptr);
  CHECK(run.now()->run->steps.size() == 2);
}

TEST_CASE("run: a folder that is away keeps its rows and says so, until it is back") {
  DiskSession run;
  fs::create_directory(run.folder / "run");
  put_step(run.folder / "run/step_1");
  put_step(run.folder / "run/step_2");
  run.apply({OpenCommand{run.folder / "run"}});
  run.apply({RunCommand{}});
  REQUIRE(run.now()->run->is_complete());
  fs::rename(run.folder / "run", run.folder / "away");
  run.apply({RunCommand{}});
  CHECK(run.now()->run->error.has_value());
  REQUIRE(run.now()->run->steps.size() == 2);
  CHECK(run.now()->run->steps[0].verdict == Verdict::kClean);
  const auto revision = run.now()->revision;
  run.apply({RunCommand{}});
  CHECK(run.now()->revision == revision);
  fs::rename(run.folder / "away", run.folder / "run");
  run.apply({RunCommand{}});
  CHECK_FALSE(run.now()->run->error.has_value());
  CHECK(run.now()->run->is_complete());
}

TEST_CASE("run: what was read of one run is not shown under the name of another") {
  Snapshot before, now;
  before.run = std::make_shared<const verbs::RunSteps>();
  now.run = before.run;
  now.checkpoint = std::make_shared<const Checkpoint>();  // a step of the run was opened
  CHECK(is_still_viewed(now, before, RunCommand{}));
  now.run = std::make_shared<const verbs::RunSteps>();
  CHECK_FALSE(is_still_viewed(now, before, RunCommand{}));
  now.checkpoint = before.checkpoint;  // none is open in either
  CHECK_FALSE(is_still_viewed(now, before, RunCommand{}));
}

TEST_CASE("run: the only step of a folder opens, and opening the folder again shows the run") {
  DiskSession run;
  put_step(run.folder / "step_1");
  run.apply({OpenCommand{run.folder.path()}, CheckCommand{}});
  REQUIRE(run.now()->checkpoint != nullptr);
  CHECK(run.now()->options.checkpoint == run.folder / "step_1");
  REQUIRE(run.now()->run != nullptr);
  run.apply({OpenCommand{run.now()->run->path}, CheckCommand{}});
  CHECK(run.now()->checkpoint == nullptr);
  CHECK(run.now()->run->steps.size() == 1);
  put_step(run.folder / "step_2");
  DiskSession other;
  other.apply({OpenCommand{run.folder.path()}, CheckCommand{}});
  CHECK(other.now()->checkpoint == nullptr);
}

TEST_CASE("disk: files that someone else changes are named, and opening again forgets it") {
  DiskSession one;
  put_step(one.folder / "step");
  one.apply({OpenCommand{one.folder / "step"}, CheckCommand{}});
  one.apply({DiskCommand{}});
  CHECK(one.now()->changed_on_disk.empty());
  fs::remove(one.folder / "step/__1_0.distcp");
  one.apply({DiskCommand{}});
  CHECK(one.now()->changed_on_disk == "1 file was removed (__1_0.distcp)");
  put(one.folder / "step/report.html", "no part of a checkpoint");
  put(one.folder / "step/__9_0.distcp", "new");
  one.apply({DiskCommand{}});
  CHECK(one.now()->changed_on_disk ==
        "1 file was removed (__1_0.distcp), 1 file was added (__9_0.distcp)");
  const std::string fqn(one.now()->checkpoint->fqn(TensorId{0}));
  one.apply({SelectTensorCommand{fqn}});
  one.apply({reopen_command(*one.now(), one.folder / "step"), CheckCommand{}});
  CHECK(one.now()->changed_on_disk.empty());
  REQUIRE(one.now()->tensor.has_value());
  CHECK(one.now()->checkpoint->fqn(*one.now()->tensor) == fqn);
}

TEST_CASE("disk: changes are noticed while a job is held and while tiles are read") {
  DiskSession disk;
  put_step(disk.folder / "step");
  disk.apply({OpenCommand{disk.folder / "step"}, CheckCommand{}});
  disk.session.on_change([&] {
    if (disk.session.job().verb == "check" && !disk.session.job().paused)
      disk.session.apply(PauseCommand{});
  });
  disk.session.apply(CheckCommand{Depth::kHeaders});
  disk.session.wait();
  disk.session.on_change(nullptr);
  REQUIRE(disk.session.job().paused);
  CHECK_FALSE(disk.session.job().changes_open);
  fs::resize_file(disk.folder / "step/__0_0.distcp", 10);
  disk.session.apply({SelectTensorCommand{std::string(disk.now()->checkpoint->fqn(TensorId{0}))},
                      TileValuesCommand{}, DiskCommand{}});
  disk.session.wait();
  CHECK(disk.now()->changed_on_disk.find("__0_0.distcp") != std::string::npos);
  disk.session.apply(CancelCommand{});
}

TEST_CASE("commands: passwords and signatures of URLs are not shown") {
  auto text = [](Command command) { return to_text(without_passwords(std::move(command))); };
  CHECK(text(OpenCommand{"https://me:secret@host/ckpt?X-Signature=abc"}).find("secret") ==
        std::string::npos);
  CHECK(text(OpenCommand{"https://host/ckpt?X-Signature=abc"}).find("abc") == std::string::npos);
  CHECK(text(CompareCommand{"https://me:secret@host/ckpt"}).find("secret") == std::string::npos);
  CHECK(text(PlanCommand{"from:https://me:secret@host/a"}).find("secret") == std::string::npos);
  CHECK(text(ExplainErrorCommand{"OSError: https://me:secret@host/a?X-Signature=abc"}) ==
        "explain-error OSError: https://...@host/a?...");
  CHECK(text(OpenCommand{"/runs/step_1"}) == "open /runs/step_1");
  const std::string url = "https://me:secret@host/a";
  OpenCommand open{"/runs/step_1", url};
  open.against = url;
  for (const Command& command :
       {Command(open), Command(LearnCommand{url}), Command(RunCommand{url}),
        Command(BrowseCommand{url}), Command(TargetCommand{url}), Command(ResumeCommand{url}),
        Command(RollBackCommand{url}), Command(SavePlanCommand{url}), Command(LoadPlanCommand{url}),
        Command(ReportCommand{url}), Command(SaveViewCommand{url}), Command(HashCommand{url})}) {
    CHECK_MESSAGE(text(command).find("https://host/a") != std::string::npos, text(command));
    CHECK_MESSAGE(text(command).find("secret") == std::string::npos, text(command));
  }
}
