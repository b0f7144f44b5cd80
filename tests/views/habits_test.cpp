// Settings of the desktop: themes, scale, settings file.
#include "views/panels/panels.h"

#include <doctest/doctest.h>

#include <set>

#include "app/gui/imgui_setup.h"
#include "app/gui/settings_autosaver.h"
#include "core/io/store.h"
#include "core/temporary_folder.h"
#include "make/snapshots.h"
#include "views/driver.h"

using namespace shw;
using verbs::UiTheme;

TEST_CASE("no two commands have the same shortcut") {
  std::set<std::string> seen;
  for (const ActionRow& row : all_actions()) {
    if (row.key.key == Key::kNone) continue;
    CAPTURE(row.name);
    CHECK(seen.insert(to_text(row.key)).second);
    CHECK(parse_key(to_text(row.key)) == row.key);
  }
  CHECK(parse_key("nonsense").key == Key::kNone);
}

TEST_CASE("the theme is changed by its key, its commands and in the settings") {
  Driver driver(make::demo());
  auto theme = [&] { return driver.desk.panel_state.settings.theme; };
  driver.frame({{Key::kT, true, true, false}});
  CHECK(theme() == UiTheme::kLight);
  driver.frame({{Key::kT, true, true, false}});
  CHECK(theme() == UiTheme::kContrast);
  driver.frame({{Key::kT, true, true, false}});
  CHECK(theme() == UiTheme::kDark);
  driver.frame({{Key::kP, true, true, false}});
  driver.frame();
  driver.type("high contrast");
  driver.frame({{Key::kEnter}});
  CHECK(theme() == UiTheme::kContrast);
  driver.frame({{Key::kComma, true, false, false}});
  CHECK(driver.desk.panel_state.settings_open);
  driver.click("settings/light");
  CHECK(theme() == UiTheme::kLight);
  driver.frame({{Key::kEscape}});
  CHECK_FALSE(driver.desk.panel_state.settings_open);
}

TEST_CASE("the scale is stepped between 100 and 300 percent by keys and in the settings") {
  Driver driver(make::demo());
  auto scale = [&] { return driver.desk.panel_state.settings.scale; };
  KeyPress larger{Key::kPlus, true, false, false}, smaller{Key::kMinus, true, false, false};
  driver.frame({smaller});
  CHECK(scale() == 1);
  driver.frame({larger});
  CHECK(scale() == doctest::Approx(1.1));
  driver.frame({{Key::kPlus, true, true, false}});  // as typed on a US keyboard
  CHECK(scale() == doctest::Approx(1.25));
  for (int i = 0; i < 12; ++i) driver.frame({larger});
  CHECK(scale() == 3);
  driver.frame({{Key::k0, true, false, false}});
  CHECK(scale() == 1);
  CHECK(driver.desk.map.zoom == 1);  // keys without Ctrl zoom the map
  driver.frame({{Key::kComma, true, false, false}});
  driver.click("settings/larger");
  CHECK(scale() == doctest::Approx(1.1));
  driver.frame({larger});  // also while the panel is open
  CHECK(scale() == doctest::Approx(1.25));
  driver.click("settings/smaller");
  driver.click("settings/standard");
  CHECK(scale() == 1);
  CHECK(next_scale(1.3, 1) == 1.5);  // a file may have a scale that is not a step
  CHECK(next_scale(1.3, -1) == 1.25);
}

TEST_CASE("monitor and person together ask for no letters beyond six times their size") {
  CHECK(total_scale(1, 3) == 3);
  CHECK(total_scale(2, 1.5) == 3);
  CHECK(total_scale(2, 3) == 6);
  CHECK(total_scale(3, 3) == 6);
  CHECK(total_scale(8, 1) == 8);
}

TEST_CASE("what the desk looks like is what its settings say, and the other way round") {
  Driver driver(make::demo_planned(), {1440, 900});
  driver.frame();
  driver.frame();
  ImVec2 at = driver.middle("split/left");
  driver.drag(at, {at.x + 90, at.y});
  driver.frame({{Key::kB, true, true, false}});
  driver.desk.panel_state.settings.theme = UiTheme::kLight;
  driver.desk.sort = {SortKey::kBytes, true};
  verbs::UiSettings kept = settings_of(driver.desk);
  CHECK(kept.left.part > 0.2);
  CHECK_FALSE(kept.right.open);
  driver.desk = UiState{};
  apply_settings(driver.desk, kept);
  driver.frame();
  driver.frame();
  CHECK(driver.middle("split/left").x == doctest::Approx(at.x + 90).epsilon(0.02));
  CHECK(driver.marks.items.contains("rail/right"));
  CHECK(settings_of(driver.desk) == kept);
  driver.frame({{Key::kComma, true, false, false}});
  auto commands = driver.click("settings/reset");
  REQUIRE(commands.size() == 1);  // the list returns to its order
  CHECK(std::get<SortCommand>(commands[0]).key == SortKey::kRecorded);
  CHECK(settings_of(driver.desk) == verbs::UiSettings{});
}

TEST_CASE("the panel that was open is opened again with the first tensor") {
  for (auto panel : {verbs::UiPanel::kBytes, verbs::UiPanel::kValues}) {
    Driver driver(make::healthy());
    verbs::UiSettings settings;
    settings.panel = panel;
    apply_settings(driver.desk, settings);
    CHECK(settings_of(driver.desk).panel == panel);
    auto commands = driver.frame();
    REQUIRE(commands.size() == 1);
    CHECK(std::holds_alternative<BytesCommand>(commands[0]) == (panel == verbs::UiPanel::kBytes));
    CHECK(driver.frame().empty());
  }
  verbs::UiSettings settings;
  settings.panel = verbs::UiPanel::kOverview;
  for (const bool is_broken : {false, true}) {
    Driver driver(is_broken ? make::demo() : make::healthy());
    apply_settings(driver.desk, settings);
    driver.frame();
    CHECK(driver.desk.summary_open == !is_broken);  // open if there is something wrong
  }
}

TEST_CASE("the settings say where they are kept, and why a file was not taken") {
  Driver driver(make::demo(), {1280, 720}, 1);
  driver.desk.panel_state.settings_file = "/home/me/.config/shardwright/desk.json";
  driver.desk.panel_state.settings_refused = "it is not JSON";
  driver.desk.panel_state.settings_open = true;
  for (int i = 0; i < 4; ++i) driver.frame();
  auto says = [&](std::string_view text) {
    for (const TextMark& mark : driver.marks.texts) {
      if (mark.text.find(text) != std::string::npos) return true;
    }
    return false;
  };
  CHECK(says("desk.json"));
  CHECK(says("it is not JSON"));
  for (const std::string& fault : driver.text_faults()) FAIL_CHECK(fault);
}

TEST_CASE("settings are written next to the frames, once they have settled") {
  TemporaryFolder folder;
  std::string file = folder / "config/shardwright/desk.json";
  verbs::UiSettings settings;
  {
    PanelsState panel_state;
    SettingsAutosaver keeper(file, panel_state);
    CHECK(keeper.read() == verbs::UiSettings{});
    CHECK(keeper.keep(settings).empty());
    settings.theme = UiTheme::kContrast;
    for (int i = 0; i < 20; ++i) {
      settings.left.part = 0.2 + i * 0.01;
      keeper.keep(settings);
    }
  }  // pending settings are written now
  PanelsState panel_state;
  SettingsAutosaver keeper(file, panel_state);
  CHECK(keeper.read() == settings);
  CHECK(panel_state.settings_file == file);
  CHECK(panel_state.settings_refused.empty());
}

TEST_CASE("nothing is written where nothing was changed") {
  TemporaryFolder folder;
  std::string file = folder / "desk.json";
  {
    PanelsState panel_state;
    SettingsAutosaver keeper(file, panel_state);
    keeper.keep(verbs::UiSettings{});
  }
  CHECK_FALSE(posix_store().exists(file));
}

namespace {

bool says(const Driver& driver, std::string_view text) {
  for (const TextMark& mark : driver.marks.texts) {
    if (mark.text.find(text) != std::string::npos) return true;
  }
  return false;
}

std::shared_ptr<Snapshot> copy_of(const std::shared_ptr<const Snapshot>& snapshot) {
  auto copy = std::make_shared<Snapshot>(*snapshot);
  ++copy->revision;
  return copy;
}

std::shared_ptr<const Snapshot> with_meaning(const std::string& text) {
  Session session;
  session.apply(ExplainErrorCommand{text});
  session.wait();
  auto snapshot = copy_of(make::demo());
  snapshot->explained = session.snapshot()->explained;
  return snapshot;
}

}  // namespace

TEST_CASE("F1 shows the rule of the finding with its drawing, and the chip at the finding too") {
  Driver driver(make::demo(), {1280, 720}, 1);
  driver.frame({{Key::kF1}});
  for (int i = 0; i < 3; ++i) driver.frame();
  CHECK(says(driver, "A tensor was transposed, but its placements were not"));
  CHECK(says(driver, "corrects the chunk offsets"));
  for (const std::string& fault : driver.text_faults()) FAIL_CHECK(fault);
  driver.click("explain/close");
  CHECK_FALSE(driver.desk.explain_open);
  driver.click("finding/explain");
  CHECK(driver.desk.explain_open);
}

TEST_CASE("an error message that is pasted is asked about, and what it can mean is drawn") {
  const std::string text =
      "Size mismatch between saved torch.Size([288, 8192, 640]) and current: torch.Size([288, "
      "4096, "
      "1280])";
  Driver driver(make::demo(), {1280, 720}, 1);
  driver.frame({{Key::kF1, false, true, false}});
  driver.frame();
  driver.click("meaning/text");
  auto commands = driver.type(text);
  REQUIRE(commands.size() == 1);
  CHECK(std::get<ExplainErrorCommand>(commands[0]).text == text);
  driver.show(with_meaning(text));
  for (int i = 0; i < 3; ++i) driver.frame();
  CHECK(says(driver, "Most likely: a placement was recorded for the wrong axis"));
  CHECK(says(driver, "saved [288, 8192, 640]"));
  for (const std::string& fault : driver.text_faults()) FAIL_CHECK(fault);
  driver.click("meaning/copy/0");
  CHECK(std::string(ImGui::GetClipboardText()).starts_with("shardwright "));
  driver.click("meaning/rule/0");
  driver.frame();
  CHECK(driver.desk.explain_open);
  CHECK_FALSE(driver.desk.panel_state.errors_open);
  CHECK(driver.desk.panel_state.lesson == "placement-axis-moved");
  driver.frame({{Key::kEscape}});
  driver.frame({{Key::kF1}});  // the finding's again
  CHECK(driver.desk.panel_state.lesson.empty());
}

TEST_CASE("a message that nobody knows is said to be unknown") {
  Driver driver(with_meaning("the coffee is cold"), {1280, 720}, 1);
  driver.desk.panel_state.errors_open = true;
  driver.desk.panel_state.error_text = "the coffee is cold";
  for (int i = 0; i < 3; ++i) driver.frame();
  CHECK(says(driver, "not known, so nothing is said about it"));
}

TEST_CASE("a report is asked for by its key, and said to be where it is") {
  Driver driver(make::demo(), {1280, 720}, 1);
  auto commands = driver.frame({{Key::kR, true, true, false}});
  REQUIRE(commands.size() == 1);
  CHECK(to_text(commands[0]) == "place report");
  driver.show(
      make::with_place(*make::demo(), verbs::NewFile::kReport, "/runs/7/step_9000-report.html"));
  driver.frame();
  CHECK(says(driver, "/runs/7/step_9000-report.html"));
  commands = driver.click("save/write");
  REQUIRE(commands.size() == 1);
  CHECK(std::get<ReportCommand>(commands[0]).path == "/runs/7/step_9000-report.html");
  driver.frame();
  CHECK_FALSE(driver.desk.panel_state.report_open);
  auto snapshot = copy_of(make::demo());
  snapshot->written = std::make_shared<const verbs::WrittenReport>(
      verbs::WrittenReport{"/runs/7/step_9000-report.html", 120'000});
  driver.show(snapshot);
  for (int i = 0; i < 3; ++i) driver.frame();
  CHECK(driver.desk.panel_state.report_open);
  CHECK(says(driver, "/runs/7/step_9000-report.html"));
  for (const std::string& fault : driver.text_faults()) FAIL_CHECK(fault);
  driver.click("report/copy");
  CHECK(std::string(ImGui::GetClipboardText()) == "/runs/7/step_9000-report.html");
  CHECK_FALSE(driver.desk.panel_state.report_open);
}

TEST_CASE("the demo is offered where nothing is open, and leads into the tour once") {
  Driver driver(std::make_shared<Snapshot>());
  driver.frame();
  driver.frame();
  CHECK_FALSE(driver.marks.items.contains("open/demo"));  // there is no folder to make it in
  driver.desk.panel_state.cache_folder = "/cache";
  auto commands = driver.click("open/demo");
  REQUIRE(commands.size() == 2);
  CHECK(std::get<DemoCommand>(commands[0]).folder == "/cache/demo");
  CHECK(std::holds_alternative<CheckCommand>(commands[1]));
  CHECK_FALSE(tour_is_on(driver.desk));
  driver.show(make::demo());
  driver.frame();
  CHECK(tour_is_on(driver.desk));
  driver.frame({{Key::kEscape}});
  CHECK_FALSE(tour_is_on(driver.desk));
  CHECK(settings_of(driver.desk).tour_seen);
  driver.show(std::make_shared<Snapshot>());
  driver.click("open/demo");
  driver.show(make::demo());
  driver.frame();
  CHECK_FALSE(tour_is_on(driver.desk));
  driver.frame({{Key::kF2}});  // shown again on request
  driver.frame();
  CHECK(tour_is_on(driver.desk));
}

TEST_CASE("every step of the tour points at what is there, and goes on when it is done") {
  Driver driver(make::demo_planned(), {1440, 900}, 1);
  driver.frame();
  driver.frame({{Key::kF2}});
  auto step = [&] { return driver.desk.panel_state.tour_step; };
  auto settle = [&] {
    for (int i = 0; i < 3; ++i) driver.frame();
    for (const std::string& fault : driver.text_faults()) FAIL_CHECK(fault);
  };
  settle();
  CHECK(step() == 0);
  CHECK(says(driver, "The verdict comes first"));
  driver.click("tour/next");
  CHECK(step() == 1);
  settle();
  auto snapshot = copy_of(make::demo_planned());
  snapshot->tensor = TensorId{index_of(*snapshot->tensor) == 0 ? 1u : 0u};
  driver.show(snapshot);
  settle();
  CHECK(step() == 2);
  driver.desk.map.zoom = 2;
  settle();
  CHECK(step() == 3);
  snapshot = copy_of(snapshot);
  snapshot->bytes = std::make_shared<const ShownBytes>();
  driver.show(snapshot);
  settle();
  CHECK(step() == 4);
  driver.frame({{Key::kR, true, false, false}});
  driver.frame();
  CHECK(step() == -1);
  CHECK(settings_of(driver.desk).tour_seen);
}

TEST_CASE("the tour stays inside the window and its text whole at every size") {
  struct Size {
    ImVec2 size;
    float scale;
  };
  for (Size each : {Size{{960, 540}, 1}, Size{{2560, 1440}, 1}, Size{{1280, 720}, 1.5f}}) {
    Driver driver(make::demo_planned(), each.size, each.scale);
    driver.frame();
    driver.frame({{Key::kF2}});
    for (int at = 0; at < 5; ++at) {
      CAPTURE(each.size.x);
      CAPTURE(at);
      for (int i = 0; i < 3; ++i) driver.frame();
      CHECK(driver.desk.panel_state.tour_step == at);
      for (const std::string& fault : driver.text_faults()) FAIL_CHECK(fault);
      ImVec2 next = driver.middle("tour/next");
      CHECK(next.x < each.size.x);
      CHECK(next.y < each.size.y);
      driver.frame({{Key::kF2}});
    }
    CHECK_FALSE(tour_is_on(driver.desk));
  }
}

TEST_CASE("the settings name every order that a list can have") {
  const std::vector<std::string> names{"as recorded", "by name",  "by bytes", "by tiles",
                                       "by findings", "by shape", "by dtype"};
  for (std::size_t key = 0; key < names.size(); ++key) {
    Driver driver(make::demo());
    driver.desk.sort.key = static_cast<SortKey>(key);
    driver.desk.panel_state.settings_open = true;
    driver.frame();
    driver.frame();
    std::size_t said = 0;
    for (const TextMark& text : driver.marks.texts) said += text.text == names[key] ? 1 : 0;
    CHECK(said == 1);
  }
}
