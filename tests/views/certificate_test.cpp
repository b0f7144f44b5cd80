// The end of a repair, and the bar while it runs, driven without a window.
#include <doctest/doctest.h>

#include <algorithm>

#include "make/snapshots.h"
#include "views/driver.h"

using namespace shw;

namespace {

std::shared_ptr<Snapshot> certified(std::size_t tensors) {
  auto snapshot = make::demo_repaired(true);
  auto list = std::make_shared<verbs::CertificateList>();
  list->path = "/runs/7/step_9000-repaired/certificate.json";
  for (std::size_t i = 0; i < tensors; ++i)
    list->rows.push_back({"layer." + std::to_string(i), verbs::TensorOutcome::kKept, 64, 0, ""});
  list->count[static_cast<std::size_t>(verbs::TensorOutcome::kKept)] = tensors;
  snapshot->certificate = list;
  return snapshot;
}

}  // namespace

TEST_CASE("the certificate opens from the bar and by its key, and closes with Escape") {
  Driver driver(certified(5));
  CHECK(driver.click("bar/certificate").empty());
  CHECK(driver.desk.certificate_open);
  driver.frame({{Key::kEscape}});
  CHECK_FALSE(driver.desk.certificate_open);
  driver.frame({{Key::kF7}});
  CHECK(driver.desk.certificate_open);
  driver.frame();
  driver.click("certificate/close");
  CHECK_FALSE(driver.desk.certificate_open);
}

TEST_CASE("a certificate of many tensors draws only what is seen") {
  auto vertices_of = [](std::size_t tensors) {
    Driver driver(certified(tensors));
    driver.desk.certificate_open = true;
    driver.frame();
    driver.frame();
    return ImGui::GetDrawData()->TotalVtxCount;
  };
  int few = vertices_of(100);
  CHECK(vertices_of(200'000) < few * 2);
}

TEST_CASE("certificate: one with a broken seal claims nothing") {
  for (const bool sealed : {true, false}) {
    auto snapshot = certified(5);
    auto list = std::make_shared<verbs::CertificateList>(*snapshot->certificate);
    list->sealed = sealed;
    snapshot->certificate = list;
    Driver driver(snapshot);
    driver.desk.certificate_open = true;
    driver.frame();
    driver.frame();
    const auto shows = [&](const char* text) {
      return std::ranges::any_of(driver.marks.texts, [&](const TextMark& mark) {
        return mark.layer == 2 && mark.text.find(text) != std::string::npos;
      });
    };
    CHECK(shows("Nothing is lost") == sealed);
    CHECK(shows("proves") == !sealed);
  }
}

TEST_CASE("a repair in place is taken back or kept from the bar, after a question") {
  auto snapshot = certified(1);
  snapshot->can_undo = true;
  Driver driver(snapshot);
  const auto click_and_agree = [&](const char* button) {
    CHECK(driver.click(button).empty());
    for (int i = 0; i < 3; ++i) driver.frame();
    return driver.click("question/yes");
  };
  auto commands = click_and_agree("bar/undo");
  REQUIRE(commands.size() == 1);
  CHECK(std::holds_alternative<UndoCommand>(commands[0]));
  commands = click_and_agree("bar/commit");
  REQUIRE(commands.size() == 1);
  CHECK(std::holds_alternative<CommitCommand>(commands[0]));
}

TEST_CASE("a job that was asked to stop says so at once and offers no second Cancel") {
  auto snapshot = make::demo_planned();
  Driver driver(snapshot);
  JobState job{true, "Repairing", Phase::kCopying, 10, 10, true, 3};
  driver.show(snapshot, job);
  driver.frame();
  CHECK(driver.marks.items.contains("job/cancel"));
  job.stopping = true;
  driver.show(snapshot, job);
  driver.frame();
  CHECK_FALSE(driver.marks.items.contains("job/cancel"));
}
