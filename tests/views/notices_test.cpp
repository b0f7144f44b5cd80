// What was done and what failed is shown, whatever else runs.
#include <doctest/doctest.h>

#include <algorithm>

#include "make/snapshots.h"
#include "views/driver.h"
#include "views/verdict.h"

using namespace shw;

namespace {

bool shows(const Driver& driver, const std::string& text) {
  return std::ranges::any_of(driver.marks.texts, [&](const TextMark& mark) {
    return mark.text.find(text) != std::string::npos;
  });
}

std::shared_ptr<Snapshot> with_failure(std::shared_ptr<Snapshot> snapshot) {
  const Error error{ErrorKind::kIo,
                    "the disk is full",
                    {"/out/w.npy"},
                    "remove it with `resume --roll-back`, or name a spec with --spec"};
  snapshot->error = error;
  snapshot->failure = std::make_shared<const FailedCommand>(FailedCommand{"values-save", error});
  return snapshot;
}

JobState repairing() {
  JobState job;
  job.running = true;
  job.stop_effect = StopEffect::kResumable;
  job.verb = "repair";
  job.title = "Repairing";
  return job;
}

}  // namespace

TEST_CASE("notices: what was just done is shown while a job runs, and above a failure") {
  for (const bool runs : {false, true}) {
    for (const bool fails : {false, true}) {
      Driver driver(fails ? with_failure(make::demo()) : make::demo());
      driver.show(fails ? with_failure(make::demo()) : make::demo(),
                  runs ? repairing() : JobState{});
      driver.desk.toast = "Copied the name.";
      driver.desk.toast_until = 100;
      driver.frame();
      driver.frame();
      CAPTURE(runs);
      CAPTURE(fails);
      CHECK(shows(driver, "Copied the name."));
      CHECK(shows(driver, "the disk is full") == fails);
      CHECK(driver.text_faults().empty());
    }
  }
}

TEST_CASE("notices: a failure stays through the next job until it is dismissed") {
  auto failed = with_failure(make::demo());
  Driver driver(failed);
  driver.frame();
  CHECK(shows(driver, "the disk is full"));
  CHECK_FALSE(driver.marks.items.contains("notice/dismiss"));  // the bar shows it
  auto next = std::make_shared<Snapshot>(*failed);
  next->error.reset();
  driver.show(next, repairing());
  driver.frame();
  driver.frame();
  CHECK(shows(driver, "the disk is full"));
  CHECK_FALSE(shows(driver, "`"));
  CHECK_FALSE(shows(driver, "--spec"));
  driver.click("notice/dismiss");
  driver.frame();
  CHECK_FALSE(shows(driver, "the disk is full"));
  driver.show(failed);
  driver.frame();
  CHECK_FALSE(shows(driver, "the disk is full"));
}

TEST_CASE("notices: a step that cannot be opened leaves the steps of its run in sight") {
  auto snapshot = make::run_of_steps(3, 2, false);
  const VerdictText before = verdict_of(*snapshot, {}, {});
  Driver driver(with_failure(snapshot));
  driver.frame();
  driver.frame();
  CHECK(driver.marks.items.contains("run/step/0"));
  CHECK(shows(driver, "the disk is full"));
  CHECK(verdict_of(*snapshot, {}, {}).title == before.title);
  snapshot->error->kind = ErrorKind::kCancelled;
  snapshot->failure = nullptr;
  driver.show(std::make_shared<Snapshot>(*snapshot));
  driver.frame();
  CHECK(driver.marks.items.contains("run/step/0"));
  CHECK_FALSE(shows(driver, "the disk is full"));
}

TEST_CASE("job bar: the button that stops a job says what is left of that job") {
  const auto tip_of = [](StopEffect effect, bool is_proof_done) {
    JobState job = repairing();
    job.stop_effect = effect;
    job.is_proof_done = is_proof_done;
    Driver driver(make::demo());
    driver.show(make::demo(), job);
    driver.frame();
    driver.frame();
    return driver.marks.tips["job/cancel"];
  };
  std::vector<std::string> tips;
  for (const auto effect : {StopEffect::kNothingWritten, StopEffect::kOutputDiscarded,
                            StopEffect::kUnchanged, StopEffect::kResumable, StopEffect::kFinished})
    tips.push_back(tip_of(effect, false));
  for (std::size_t i = 0; i < tips.size(); ++i) {
    CHECK((tips[i].find("nothing is written") != std::string::npos) == (i == 0));
    CHECK((tips[i].find("resumed") != std::string::npos) == (i == 3));
    for (std::size_t j = 0; j < i; ++j) CHECK(tips[i] != tips[j]);
  }
  CHECK(tip_of(StopEffect::kResumable, true).find("written and proved") != std::string::npos);
  CHECK(tip_of(StopEffect::kNothingWritten, true) == tips[0]);
}
