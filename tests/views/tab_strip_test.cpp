// The tab strip: its contents, and its requests to the window.
#include <doctest/doctest.h>

#include "make/snapshots.h"
#include "views/driver.h"

using namespace shw;

namespace {

OpenTabs three_tabs() {
  OpenTabs tabs;
  tabs.tabs = {{"/runs/7/step_9000", Tone::kBad, "Will not load"},
               {"/runs/7/step_8000", Tone::kOk, "No finding"},
               {"/runs/8/step_9000/", Tone::kWarn, "1 warning"}};
  return tabs;
}

bool asks(const Driver& driver, TabRequest::Kind kind, std::size_t tab) {
  return driver.tab_request && driver.tab_request->kind == kind && driver.tab_request->tab == tab;
}

JobState writing() {
  JobState job;
  job.running = true;
  job.stop_effect = StopEffect::kResumable;
  job.title = "Repairing";
  return job;
}

}  // namespace

TEST_CASE("tabs: names have as many folders as tell them apart") {
  const std::vector<std::string> names = tab_names(three_tabs().tabs);
  CHECK(names == std::vector<std::string>{"7/step_9000", "step_8000", "8/step_9000"});
  CHECK(tab_names({{"/a"}, {"/a"}, {""}}) == std::vector<std::string>{"a", "a", "nothing open"});
  CHECK(tab_names({{"/x/\x1b[2J"}})[0].find('\x1b') == std::string::npos);
}

TEST_CASE("tabs: the strip is there from two tabs on") {
  Driver driver(make::demo());
  driver.frame();
  driver.frame();
  CHECK_FALSE(driver.marks.items.contains("tabs/0"));
  const float alone = driver.marks.items.at("region/verdict").y;
  driver.tabs = three_tabs();
  driver.frame();
  driver.frame();
  CHECK(driver.marks.items.contains("tabs/2"));
  CHECK(driver.marks.items.contains("tabs/new"));
  CHECK(driver.marks.items.at("region/verdict").y > alone);
  CHECK(driver.text_faults().empty());
}

TEST_CASE("tabs: a click shows a tab, the cross and the middle button close it") {
  Driver driver(make::demo());
  driver.tabs = three_tabs();
  driver.click("tabs/1");
  CHECK(asks(driver, TabRequest::Kind::kShow, 1));
  driver.click("tabs/2/close");
  CHECK(asks(driver, TabRequest::Kind::kClose, 2));
  driver.click("tabs/0/close");
  CHECK(asks(driver, TabRequest::Kind::kClose, 0));
}

TEST_CASE("tabs: keys go around, and close the one that is shown") {
  Driver driver(make::demo());
  driver.tabs = three_tabs();
  driver.frame();
  driver.frame({key_of(Action::kNextTab)});
  CHECK(asks(driver, TabRequest::Kind::kShow, 1));
  driver.frame({key_of(Action::kPreviousTab)});
  CHECK(asks(driver, TabRequest::Kind::kShow, 2));
  driver.frame({key_of(Action::kCloseTab)});
  CHECK(asks(driver, TabRequest::Kind::kClose, 0));
}

TEST_CASE("tabs: a single tab is not closed") {
  Driver driver(make::demo());
  driver.frame();
  driver.frame({key_of(Action::kCloseTab)});
  driver.frame({key_of(Action::kNextTab)});
  CHECK_FALSE(driver.tab_request);
}

TEST_CASE("tabs: a tab whose job writes is asked about before it closes") {
  auto snapshot = make::demo_planned();
  Driver driver(snapshot);
  driver.tabs = three_tabs();
  driver.show(snapshot, writing());
  driver.frame();
  driver.frame({key_of(Action::kCloseTab)});
  CHECK(driver.desk.asked == Action::kCloseTab);
  CHECK_FALSE(driver.tab_request);
  driver.frame({{Key::kEnter}});  // no key confirms it
  CHECK_FALSE(driver.tab_request);
  driver.click("question/yes");
  CHECK(asks(driver, TabRequest::Kind::kClose, 0));
  driver.tab_request.reset();
  driver.desk.close_wanted = true;  // the close button of a tab in the background
  driver.frame();
  CHECK(driver.desk.asked == Action::kCloseTab);
}

TEST_CASE("tabs: a checkpoint is opened in a new tab from the browser") {
  auto snapshot = std::make_shared<Snapshot>(*make::demo());
  Driver driver(snapshot);
  driver.frame();
  driver.frame({key_of(Action::kOpenInTab)});
  REQUIRE(driver.desk.browser.open);
  driver.frame();
  driver.frame();
  driver.type("step_1");
  const std::vector<Command> commands = driver.frame({{Key::kEnter}});
  REQUIRE(driver.tab_request);
  CHECK(driver.tab_request->kind == TabRequest::Kind::kNew);
  REQUIRE(driver.tab_request->open);
  CHECK(driver.tab_request->open->path.ends_with("step_1"));
  for (const Command& command : commands) CHECK_FALSE(std::holds_alternative<OpenCommand>(command));
}

TEST_CASE("tabs: no more than twelve") {
  Driver driver(make::demo());
  driver.tabs.tabs.resize(kMaxTabs);
  driver.frame();
  driver.frame({key_of(Action::kOpenInTab)});
  CHECK_FALSE(driver.desk.browser.open);
  driver.frame();
  CHECK(driver.text_faults().empty());
}

TEST_CASE("tabs: the place that another tab shows is taken over with its tensor") {
  auto snapshot = make::demo();
  Driver driver(snapshot);
  driver.frame();
  REQUIRE(snapshot->tensor);
  WantedPlace place{*snapshot->tensor, driver.desk.map.slice, 3, 5, 7};
  driver.desk.requested_place = place;
  driver.frame();
  CHECK(driver.desk.map.zoom == 3);
  CHECK_FALSE(driver.desk.requested_place);
  // For another tensor the view is applied later.
  place.tensor = TensorId{place.tensor == TensorId{0} ? 1u : 0u};
  place.zoom = 2;
  driver.desk.requested_place = place;
  driver.frame();
  CHECK(driver.desk.map.zoom == 3);
  CHECK(driver.desk.requested_place);
}
