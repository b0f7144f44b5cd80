// All window sizes work: columns can be resized, hidden and reopened, and no text is cut off or
// overlaps another.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "make/snapshots.h"
#include "views/driver.h"
#include "views/imgui_versions.h"
#include "views/panels/panels.h"

using namespace shw;

namespace {

struct Screen {
  ImVec2 size;
  float scale;
};
const Screen kScreens[] = {{{960, 540}, 1},   {{1280, 720}, 1},  {{1280, 720}, 1.5f},
                           {{1920, 1080}, 2}, {{2560, 1440}, 1}, {{2560, 1440}, 2}};

void check_texts(const Driver& driver) {
  for (const std::string& fault : driver.text_faults()) FAIL_CHECK(fault);
}

}  // namespace

TEST_CASE("no text is cut off or overprinted in any state at any size") {
  auto states = make::all_states();
  for (const Screen& screen : kScreens) {
    Driver driver(states[0].snapshot, screen.size, screen.scale);
    for (const make::State& state : states) {
      CAPTURE(state.name);
      CAPTURE(screen.size.x);
      CAPTURE(screen.scale);
      driver.desk = UiState{};
      driver.show(state.snapshot, state.job);
      driver.frame();
      driver.frame();
      check_texts(driver);
      driver.desk.map.zoom = 3;
      driver.desk.summary_open = screen.size.y > 1000;
      driver.frame();
      driver.frame();
      check_texts(driver);
      if (!driver.desk.left_rail) continue;
      driver.desk.layout.left.peeked = true;
      driver.frame();
      driver.frame();
      check_texts(driver);
    }
  }
}

TEST_CASE("no text is cut off at any step of the scale on a window of 960 by 540 of its units") {
  auto states = make::all_states();
  std::size_t theme = 0;
  for (double scale = 1; scale < 3; scale = next_scale(scale, 1)) {
    double next = next_scale(scale, 1);
    auto s = static_cast<float>(next);
    Driver driver(states[0].snapshot, {std::ceil(960 * s), std::ceil(540 * s)}, s);
    for (const make::State& state : states) {
      CAPTURE(state.name);
      CAPTURE(next);
      driver.desk = UiState{};
      driver.desk.panel_state.settings.theme = verbs::kUiThemes[theme++ % verbs::kUiThemes.size()];
      driver.show(state.snapshot, state.job);
      driver.frame();
      driver.frame();
      check_texts(driver);
      driver.desk.panel_state.settings_open = true;
      for (int i = 0; i < 3; ++i) driver.frame();
      check_texts(driver);
    }
  }
}

TEST_CASE("every panel above the desk keeps its texts whole on small windows and large letters") {
  struct Panel {
    const char* name;
    void (*open)(UiState&);
  };
  const Panel panels[] = {
      {"explain", [](UiState& desk) { desk.explain_open = true; }},
      {"settings", [](UiState& desk) { desk.panel_state.settings_open = true; }},
      {"error", [](UiState& desk) { desk.panel_state.errors_open = true; }},
      {"report", [](UiState& desk) { desk.panel_state.report_open = true; }},
      {"expect", [](UiState& desk) { desk.panel_state.expect_open = true; }},
      {"pins", [](UiState& desk) { desk.panel_state.pins_open = true; }},
      {"plan", [](UiState& desk) { desk.plan_open = true; }},
      {"mesh", [](UiState& desk) { desk.mesh_open = true; }},
      {"palette", [](UiState& desk) { desk.palette_open = true; }}};
  auto snapshot = make::demo_explained(
      "/mnt/lustre/experiments/2026/moe-288x8/checkpoints/step_9000-report.html");
  for (const Screen& screen : {Screen{{960, 540}, 1}, Screen{{1280, 720}, 1.5f},
                               Screen{{1920, 1080}, 2}, Screen{{1280, 720}, 2}}) {
    Driver driver(snapshot, screen.size, screen.scale);
    for (const Panel& panel : panels) {
      CAPTURE(panel.name);
      CAPTURE(screen.size.x);
      CAPTURE(screen.scale);
      driver.desk = UiState{};
      driver.desk.panel_state.error_text = snapshot->explained->text;
      panel.open(driver.desk);
      for (int i = 0; i < 4; ++i) driver.frame();
      check_texts(driver);
    }
  }
}

TEST_CASE("where a panel is higher than the window its end is reached by scrolling") {
  Driver driver(make::demo_planned(), {1280, 720}, 3);
  driver.desk.panel_state.settings_open = true;
  for (int i = 0; i < 4; ++i) driver.frame();
  CHECK(driver.middle("settings/tour").y > 720);
  CHECK(driver.middle("settings/close").y < 720);
  move_mouse({640, 360});
  for (int i = 0; i < 40; ++i) {
    turn_wheel(-3);
    driver.frame();
  }
  turn_wheel(0);
  driver.frame();
  CHECK(driver.middle("settings/tour").y < 720);
  driver.click("settings/close");
  CHECK_FALSE(driver.desk.panel_state.settings_open);
}

TEST_CASE("the palette's chosen row is seen on a small window however far down it is") {
  Driver driver(make::demo_planned(), {1280, 720}, 3);
  driver.desk.palette_open = driver.desk.palette_wanted = true;
  driver.frame();
  for (int i = 0; i < 30; ++i) driver.frame({{Key::kDown}});
  driver.frame();
  CHECK(driver.desk.palette_row == 30);
  float lowest = 0;
  for (const auto& [name, box] : driver.marks.items) {
    if (name.starts_with("palette/")) lowest = std::max(lowest, box.w);
  }
  CHECK(lowest <= 720);
}

TEST_CASE("at 300 percent on a small window both columns are reached from their rails") {
  Driver driver(make::demo_planned(), {1280, 720}, 3);
  driver.click("rail/left");
  CHECK(driver.marks.items.contains("filter"));
  driver.frame({{Key::kEscape}});
  driver.frame();
  driver.click("rail/right");
  CHECK(driver.desk.layout.right.peeked);
  driver.frame({{Key::k0, true, false, false}});
  driver.frame({{Key::kP, true, true, false}});
  driver.frame();
  CHECK(driver.marks.items.contains("palette/text"));
}

TEST_CASE("the check of texts finds what is cut off and what is on another text") {
  Driver driver(make::demo());
  driver.marks.texts = {{{0, 0, 50, 10}, {0, 0, 40, 100}, false, 0, "too long"},
                        {{60, 0, 90, 10}, {0, 0, 400, 100}, false, 0, "under"},
                        {{80, 2, 99, 12}, {0, 0, 400, 100}, false, 0, "over"},
                        {{0, 200, 30, 210}, {0, 0, 400, 100}, false, 0, "below"},
                        {{0, 200, 30, 210}, {0, 0, 400, 100}, true, 0, "scrolled"}};
  CHECK(driver.text_faults().size() == 3);
}

TEST_CASE("the map keeps a least width at every size, and both columns can be reached") {
  for (const Screen& screen : kScreens) {
    CAPTURE(screen.size.x);
    CAPTURE(screen.scale);
    Regions regions = regions_of(screen.size, screen.scale, 36 * screen.scale, {});
    CHECK(regions.centre.max.x - regions.centre.min.x >= kMinWidthWithRightColumn * screen.scale);
    CHECK(regions.left.max.x - regions.left.min.x >= kRailWidth * screen.scale - 1);
    CHECK(regions.right.max.x - regions.right.min.x >= kRailWidth * screen.scale - 1);
  }
  CHECK_FALSE(regions_of({1280, 720}, 1, 36, {}).left_rail);
  CHECK(regions_of({960, 540}, 1, 36, {}).left_rail);
  CHECK_FALSE(regions_of({960, 540}, 1, 36, {}).right_rail);
  CHECK(regions_of({640, 360}, 1, 36, {}).right_rail);
}

TEST_CASE("the numbers at a picture are those of what is seen of it") {
  Driver driver(make::demo_planned(), {1280, 720}, 1);
  auto says = [&](std::string_view text) {
    return std::count_if(driver.marks.texts.begin(), driver.marks.texts.end(),
                         [&](const TextMark& mark) { return mark.text == text; });
  };
  driver.frame();
  driver.frame();
  auto rows = says("8,192"), columns = says("640");
  CHECK(says("1,024") == 0);
  driver.desk.map.zoom = 4;
  driver.desk.map.pan_row = 1024;
  driver.frame();
  driver.frame();
  CHECK(says("8,192") == rows - 1);  // the others are the extents themselves
  CHECK(says("640") == columns - 1);
  CHECK(says("1,024") > 0);
}

TEST_CASE("sizes: a column that opens over the map hides what is below it") {
  Driver driver(make::demo_planned(), {960, 540}, 1);
  driver.frame();
  driver.frame({{Key::kF, true, false, false}});
  driver.frame();
  REQUIRE(driver.desk.layout.left.peeked);
  const ImDrawData& drawn = *ImGui::GetDrawData();
  std::size_t columns = 0;
  for (int i = 0; i < drawn.CmdListsCount; ++i) {
    const ImDrawList& list = *drawn.CmdLists[i];
    const std::string_view owner = list._OwnerName == nullptr ? "" : list._OwnerName;
    if (owner.find("/left_") == owner.npos || owner.find("list") != owner.npos ||
        owner.find("rail") != owner.npos)
      continue;
    ++columns;
    REQUIRE(list.VtxBuffer.Size >= 4);
    CHECK(list.VtxBuffer[0].col == dark_theme().side);
    CHECK(list.VtxBuffer[2].pos.y - list.VtxBuffer[0].pos.y > 400);
  }
  CHECK(columns == 1);
}

TEST_CASE("a splitter is dragged within its bounds, and a double click resets it") {
  Driver driver(make::demo_planned(), {1440, 900});
  driver.frame();
  driver.frame();
  float standard = driver.middle("split/left").x;
  ImVec2 at = driver.middle("split/left");
  driver.drag(at, {at.x + 90, at.y});
  CHECK(driver.middle("split/left").x == doctest::Approx(standard + 90).epsilon(0.02));
  at = driver.middle("split/left");
  driver.drag(at, {5, at.y});
  CHECK(driver.middle("split/left").x == doctest::Approx(kMinLeftWidth).epsilon(0.02));
  at = driver.middle("split/left");
  driver.drag(at, {1400, at.y});
  CHECK(driver.middle("split/right").x - driver.middle("split/left").x >= kMinWidthWithList - 2);
  move_mouse(driver.middle("split/left"));
  for (bool down : {true, false, true, false}) {
    press_mouse(down);
    driver.frame();
  }
  driver.frame();
  CHECK(driver.middle("split/left").x == standard);
}

TEST_CASE("a column is hidden by its sign or its key, and comes back from its rail") {
  Driver driver(make::demo());
  driver.click("collapse/left");
  CHECK(driver.marks.items.contains("rail/left"));
  CHECK_FALSE(driver.marks.items.contains("filter"));
  driver.click("rail/left");
  CHECK(driver.marks.items.contains("filter"));
  driver.frame({{Key::kB, true, false, false}});
  CHECK(driver.marks.items.contains("rail/left"));
  driver.frame({{Key::kB, true, false, false}});
  driver.frame();
  CHECK_FALSE(driver.marks.items.contains("rail/left"));
  CHECK_FALSE(driver.desk.layout.left.peeked);
  driver.frame({{Key::kB, true, true, false}});
  CHECK(driver.marks.items.contains("rail/right"));
}

TEST_CASE("on a small screen the list opens above the map and closes again") {
  Driver driver(make::demo(), {960, 540});
  driver.click("rail/left");
  CHECK(driver.marks.items.contains("list/row/1"));
  auto commands = driver.click("list/row/2");
  CHECK(commands.size() == 1);
  driver.frame({{Key::kEscape}});
  driver.frame();
  CHECK_FALSE(driver.marks.items.contains("list/row/1"));
  driver.frame({{Key::kF, true, false, false}});
  driver.frame();
  CHECK(driver.marks.items.contains("filter"));
  ImVec2 beside = driver.middle("map/saved");
  move_mouse({800, beside.y});
  driver.frame();
}

TEST_CASE("Escape takes back one thing at a time and leaves the filter alone") {
  Driver driver(make::healthy());
  driver.desk.filter = "gate";
  driver.desk.map.zoom = 4;
  driver.desk.mesh_open = true;
  driver.frame({{Key::kEscape}});
  CHECK_FALSE(driver.desk.mesh_open);
  driver.frame({{Key::kEscape}});
  CHECK(driver.desk.map.zoom == 1);
  CHECK(driver.frame({{Key::kEscape}}).empty());
  CHECK(driver.desk.filter == "gate");
  driver.click("filter");
  auto commands = driver.frame({{Key::kEscape}});
  REQUIRE(commands.size() == 1);
  CHECK(std::get<FilterCommand>(commands[0]).text.empty());
}
