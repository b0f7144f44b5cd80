// A job that is paused at its next step, and its outcomes.
#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "core/base/stages.h"
#include "core/session/session.h"
#include "core/temporary_folder.h"

using namespace shw;

namespace {

std::string paused_case(const char* name) {
  return std::string(SHW_TEST_DATA) + "/torch-2.14/s1_placement_not_transposed/" + name;
}

// A session whose next job is paused as soon as it has begun, before it does anything.
struct PausedSession {
  TemporaryFolder folder;
  Session session;
  std::atomic<bool> pauses{false};
  PausedSession() {
    session.apply({OpenCommand{paused_case("ckpt"), paused_case("spec.json")}, CheckCommand{},
                   PlanCommand{}});
    session.wait();
    REQUIRE(session.snapshot()->plan != nullptr);
    session.on_change([this] {
      // The list publishes too, but the job has to have started.
      if (!pauses || !session.job().running) return;
      pauses = false;
      session.apply(PauseCommand{});
    });
  }
  ~PausedSession() { session.on_change(nullptr); }
  void begin_paused(Command command) {
    pauses = true;
    session.apply(std::move(command));
    session.wait();
    REQUIRE(session.job().paused);
  }
};

}  // namespace

TEST_CASE("a repair that is paused writes nothing more, and is whole once it goes on") {
  PausedSession s;
  s.begin_paused(RepairCommand{{s.folder / "out", false}});
  // The job stops at its next test for a pause.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  std::uint64_t done = s.session.job().done;
  double seconds = s.session.job().seconds;
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  JobState held = s.session.job();
  CHECK(held.running);
  CHECK(held.done == done);
  CHECK(held.seconds == seconds);
  CHECK_FALSE(std::filesystem::exists(s.folder / "out"));
  CHECK(s.session.snapshot()->repaired == nullptr);
  CHECK(held.stop_effect == StopEffect::kResumable);

  s.session.apply(ContinueCommand{});
  s.session.wait();
  REQUIRE_FALSE(s.session.snapshot()->error.has_value());
  REQUIRE(s.session.snapshot()->repaired != nullptr);
  CHECK(std::filesystem::exists(s.folder / "out/certificate.json"));
  CHECK_FALSE(s.session.job().paused);
}

TEST_CASE("a repair that is paused can be cancelled, gone on with, and left") {
  PausedSession s;
  s.begin_paused(RepairCommand{{s.folder / "out", false}});
  s.session.apply(CancelCommand{});
  s.session.wait();
  REQUIRE(s.session.snapshot()->error.has_value());
  CHECK(s.session.snapshot()->error->kind == ErrorKind::kCancelled);
  CHECK_FALSE(s.session.job().paused);
  // A pause of the previous job does not hold the next one.
  s.session.apply(CheckCommand{});
  s.session.wait();
  CHECK_FALSE(s.session.snapshot()->error.has_value());
  s.session.apply(PlanCommand{});
  s.session.wait();
  s.begin_paused(RepairCommand{{s.folder / "other", false}});
  // The session ends while a job is paused: its destructor must not wait for ever.
}

TEST_CASE("the list and what looks into files are there while a job is paused") {
  PausedSession s;
  s.begin_paused(CheckCommand{Depth::kHeaders});
  s.session.apply({FilterCommand{"w"}, BytesCommand{}, ValuesCommand{}});
  s.session.wait();
  CHECK(s.session.job().paused);
  CHECK(s.session.snapshot()->filter == "w");
  REQUIRE(s.session.snapshot()->values != nullptr);
  CHECK(s.session.snapshot()->values->values.has_value());
}

TEST_CASE("no stage is charged with the time in which its job was paused") {
  Progress progress;
  progress.pause();
  std::thread hand([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    progress.go_on();
  });
  {
    StageClock clock(&progress.stages, Stage::kWrite, 1);
    CHECK_FALSE(is_cancelled(&progress));
  }
  hand.join();
  CHECK(progress.stages[static_cast<std::size_t>(Stage::kWrite)].nanoseconds < 150'000'000);
}
