// Controls have tips, and Tab reaches them in reading order.
#include "views/controls.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>

#include "make/snapshots.h"
#include "views/driver.h"
#include "views/imgui_versions.h"

using namespace shw;
namespace fs = std::filesystem;

namespace {

const KeyPress kTab{Key::kTab}, kShiftTab{Key::kTab, false, true, false};

struct OpenPanel {
  std::string name;
  void (*open)(UiState&);
};
const std::array kControlPanels{
    OpenPanel{"plan", [](UiState& desk) { desk.plan_open = true; }},
    OpenPanel{"explain", [](UiState& desk) { desk.explain_open = true; }},
    OpenPanel{"palette", [](UiState& desk) { desk.palette_open = true; }},
    OpenPanel{"mesh", [](UiState& desk) { desk.mesh_open = true; }},
    OpenPanel{"settings", [](UiState& desk) { desk.panel_state.settings_open = true; }},
    OpenPanel{"pins", [](UiState& desk) { desk.panel_state.pins_open = true; }},
    OpenPanel{"expect", [](UiState& desk) { desk.panel_state.expect_open = true; }},
    OpenPanel{"write", [](UiState& desk) { desk.write.open = true; }},
    OpenPanel{"errors", [](UiState& desk) { desk.panel_state.errors_open = true; }}};

// The tips of all controls, in all states and panels.
std::map<std::string, std::string, std::less<>> all_tips() {
  std::map<std::string, std::string, std::less<>> tips;
  auto add = [&](const Driver& driver) {
    tips.insert(driver.marks.tips.begin(), driver.marks.tips.end());
  };
  for (const make::State& state : make::all_states()) {
    Driver driver(state.snapshot);
    driver.show(state.snapshot, state.job);
    driver.frame();
    driver.frame();
    add(driver);
    driver.desk.summary_open = true;
    driver.frame();
    add(driver);
    driver.desk.table.open = true;
    driver.frame();
    add(driver);
  }
  for (const OpenPanel& panel : kControlPanels) {
    Driver driver(make::demo_planned());
    panel.open(driver.desk);
    driver.frame();
    driver.frame();
    add(driver);
  }
  return tips;
}

// Index of the focused control among all controls.
std::optional<std::size_t> place_of_focus(const Driver& driver) {
  const std::vector<ImGuiID>& ids = driver.desk.tabs.ids();
  auto found = std::find(ids.begin(), ids.end(), driver.desk.tabs.focused());
  if (found == ids.end()) return std::nullopt;
  return static_cast<std::size_t>(found - ids.begin());
}

// Presses Tab until every control had the focus. The map shows details of its tile while focused,
// so that the number of controls may change meanwhile.
void walk(Driver& driver, KeyPress key) {
  for (int i = 0; i < 3; ++i) driver.frame();
  std::size_t count = driver.desk.tabs.ids().size();
  auto before = place_of_focus(driver);
  std::set<ImGuiID> left(driver.desk.tabs.ids().begin(), driver.desk.tabs.ids().end());
  for (std::size_t i = 0; !left.empty() && i < 2 * count; ++i) {
    driver.frame({key});
    driver.frame();
    CAPTURE(driver.marks.focused);
    const auto now = place_of_focus(driver);
    REQUIRE(now);
    const bool is_same = driver.desk.tabs.ids().size() == count;
    count = driver.desk.tabs.ids().size();
    if (is_same && key == kTab) CHECK(*now == (before ? (*before + 1) % count : 0));
    if (is_same && key == kShiftTab)
      CHECK(*now == (before ? *before + count - 1 : count - 1) % count);
    CHECK(driver.marks.has_ring);
    left.erase(driver.desk.tabs.focused());
    before = now;
  }
  CHECK(left.empty());
}

}  // namespace

TEST_CASE("controls: views make them by controls.h alone, which asks for a tooltip") {
  const std::set<std::string> kImgui{"InvisibleButton", "InputText", "Selectable", "Button(",
                                     "Checkbox",        "Combo",     "Slider",     "MenuItem"};
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(SHW_SOURCE_DIR) / "views")) {
    if (!entry.is_regular_file() || entry.path().filename() == "controls.cpp") continue;
    ++files;
    std::ifstream in(entry.path());
    std::stringstream text;
    text << in.rdbuf();
    for (const std::string& call : kImgui)
      CHECK_MESSAGE(text.str().find("ImGui::" + call) == std::string::npos,
                    "\"" << call << "\" in " << entry.path().filename().string());
  }
  CHECK(files > 100);
}

TEST_CASE("controls: each of them says in a short sentence what it does") {
  const auto tips = all_tips();
  CHECK(tips.size() > 60);
  for (const auto& [name, tip] : tips) {
    CAPTURE(name);
    CAPTURE(tip);
    CHECK_FALSE(tip.empty());
    CHECK(tip.size() < 400);
  }
}

TEST_CASE("controls: the tooltip of a button has the key of its action") {
  const auto tips = all_tips();
  auto has = [&](const char* name, const char* key) {
    auto found = tips.find(std::string_view(name));
    REQUIRE_MESSAGE(found != tips.end(), name);
    CHECK_MESSAGE(found->second.find(key) != std::string::npos, found->second);
  };
  has("plan/apply", "(Ctrl+Enter)");
  has("run/count", "(Ctrl+Shift+N)");
  has("filter", "(Ctrl+F)");
  has("settings/close", "(Esc)");
}

TEST_CASE("tab: every control is reached in reading order, and is framed then") {
  for (const make::State& state : make::all_states()) {
    CAPTURE(state.name);
    Driver driver(state.snapshot);
    driver.show(state.snapshot, state.job);
    walk(driver, kTab);
  }
}

TEST_CASE("tab: Shift+Tab goes the other way") {
  Driver driver(make::demo_planned());
  walk(driver, kShiftTab);
}

TEST_CASE("tab: an open panel keeps the keyboard among its own controls") {
  for (const OpenPanel& panel : kControlPanels) {
    CAPTURE(panel.name);
    Driver driver(make::demo_planned());
    driver.frame();
    driver.frame();
    const std::vector<ImGuiID> below = driver.desk.tabs.ids();
    panel.open(driver.desk);
    driver.frame();
    driver.frame();
    driver.frame();
    for (ImGuiID id : driver.desk.tabs.ids())
      CHECK(std::find(below.begin(), below.end(), id) == below.end());
    walk(driver, kTab);
  }
}

TEST_CASE("tab: a list is one stop, whatever the number of its rows") {
  Driver few(make::many_tensors(30));
  few.frame();
  few.frame();
  const std::size_t count = few.desk.tabs.ids().size();
  CHECK(count < 30);
}

TEST_CASE("tab: controls of one line follow from left to right, however they are drawn") {
  Driver driver(make::demo_planned());
  driver.desk.plan_open = true;
  for (int i = 0; i < 3; ++i) driver.frame();
  auto left_of = [&](const char* a, const char* b) {
    return driver.middle(a).x < driver.middle(b).x;
  };
  CHECK(left_of("plan/close", "plan/apply"));
  driver.frame({kShiftTab});
  driver.frame();
  while (place_of_focus(driver) != driver.desk.tabs.ids().size() - 1) {
    driver.frame({kTab});
    driver.frame();
  }
  CHECK(driver.desk.tabs.focused_box().x == driver.marks.items.at("plan/apply").x);
  driver.frame({kShiftTab});
  driver.frame();
  CHECK(driver.desk.tabs.focused_box().x < driver.marks.items.at("plan/apply").x);
}

TEST_CASE("tab: Enter presses the control that Tab reached, once, and nothing without a frame") {
  Driver driver(make::demo_planned());
  driver.desk.write.open = true;
  driver.frame();
  driver.frame();
  const bool before = driver.desk.write.chosen.weights_only;
  driver.frame({{Key::kEnter}});
  CHECK(driver.desk.write.chosen.weights_only == before);
  for (int i = 0; i < 40 && driver.marks.focused != "write/weights-only"; ++i) {
    driver.frame({kTab});
    driver.frame();  // imgui moves the keyboard one frame later
  }
  REQUIRE(driver.marks.focused == "write/weights-only");
  driver.frame({{Key::kEnter}});
  CHECK(driver.desk.write.chosen.weights_only != before);
  driver.frame();
  CHECK(driver.desk.write.chosen.weights_only != before);
}
