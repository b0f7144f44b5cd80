// The numbers of a run as a job of the session.
#include <doctest/doctest.h>

#include "core/session/session.h"
#include "core/verbs/safetensors_steps.h"

using namespace shw;

namespace {

struct CountedRun {
  TemporaryFolder folder;
  Session session;
  CountedRun() {
    for (int step = 1; step <= 3; ++step)
      put_step_of_values(folder / ("step_" + std::to_string(step)),
                         {{"layers.0.mlp.up.weight", {static_cast<float>(step), 0}}});
  }
  std::shared_ptr<const Snapshot> now() const { return session.snapshot(); }
  void apply(std::vector<Command> commands) {
    session.apply(std::move(commands));
    session.wait();
  }
};

}  // namespace

TEST_CASE("run numbers: the command counts every step of the run that is shown") {
  CountedRun run;
  run.apply({OpenCommand{run.folder.path()}, CheckCommand{}});
  CHECK(run.now()->run_numbers == nullptr);
  run.apply({RunNumbersCommand{}});
  REQUIRE(run.now()->run_numbers != nullptr);
  CHECK(run.now()->run_numbers->steps.size() == 3);
  CHECK(run.now()->run_numbers->steps.at("step_3")->all.norm() == doctest::Approx(3));
  CHECK_FALSE(run.now()->error.has_value());
}

TEST_CASE("run numbers: a step that is opened keeps the numbers of its run") {
  CountedRun run;
  run.apply({OpenCommand{run.folder.path()}, CheckCommand{}});
  run.apply({RunNumbersCommand{}});
  run.apply({OpenCommand{run.folder / "step_2"}, CheckCommand{}});
  CHECK(run.now()->checkpoint != nullptr);
  REQUIRE(run.now()->run_numbers != nullptr);
  CHECK(run.now()->run_numbers->steps.size() == 3);
}

TEST_CASE("run numbers: counting goes on while a step is opened") {
  CountedRun run;
  run.apply({OpenCommand{run.folder.path()}, CheckCommand{}});
  run.session.apply({RunNumbersCommand{}, OpenCommand{run.folder / "step_2"}, CheckCommand{}});
  run.session.wait();
  CHECK(run.now()->checkpoint != nullptr);
  REQUIRE(run.now()->run_numbers != nullptr);
  CHECK(run.now()->run_numbers->steps.size() == 3);
}

TEST_CASE("run numbers: what was counted before a cancel stays, and is not an error") {
  CountedRun run;
  run.apply({OpenCommand{run.folder.path()}, CheckCommand{}});
  run.session.apply(Command{RunNumbersCommand{}});
  run.session.apply(Command{CancelCommand{"run-numbers"}});
  run.session.wait();
  CHECK_FALSE(run.now()->error.has_value());
  run.apply({RunNumbersCommand{}});
  REQUIRE(run.now()->run_numbers != nullptr);
  CHECK(run.now()->run_numbers->steps.size() == 3);
}

TEST_CASE("run numbers: without a run there is an error") {
  CountedRun run;
  run.apply({RunNumbersCommand{}});
  CHECK(run.now()->error.has_value());
}
