// Keys while panels are open: every shown key works, and none has invisible effects behind a panel.
#include <doctest/doctest.h>

#include <algorithm>

#include "make/snapshots.h"
#include "views/driver.h"
#include "views/imgui_versions.h"

using namespace shw;

namespace {

JobState busy_with(const char* title) {
  JobState job;
  job.running = true;
  job.title = title;
  return job;
}

struct OverlayRegion {
  const char* name;
  const char* button;  // that closes it
  void (*open)(UiState&);
  bool (*is_open)(const UiState&);
};
const OverlayRegion kPanels[] = {
    {"plan", "plan/close", [](UiState& d) { d.plan_open = true; },
     [](const UiState& d) { return d.plan_open; }},
    {"mesh", "mesh/close", [](UiState& d) { d.mesh_open = true; },
     [](const UiState& d) { return d.mesh_open; }},
    {"explain", "explain/close", [](UiState& d) { d.explain_open = true; },
     [](const UiState& d) { return d.explain_open; }},
    {"settings", "settings/close", [](UiState& d) { d.panel_state.settings_open = true; },
     [](const UiState& d) { return d.panel_state.settings_open; }},
    {"pins", "pins/close", [](UiState& d) { d.panel_state.pins_open = true; },
     [](const UiState& d) { return d.panel_state.pins_open; }},
    {"expect", "expect/close", [](UiState& d) { d.panel_state.expect_open = true; },
     [](const UiState& d) { return d.panel_state.expect_open; }},
    {"error", "meaning/close", [](UiState& d) { d.panel_state.errors_open = true; },
     [](const UiState& d) { return d.panel_state.errors_open; }},
    {"report", "report/close", [](UiState& d) { d.panel_state.report_open = true; },
     [](const UiState& d) { return d.panel_state.report_open; }},
    {"certificate", "certificate/close", [](UiState& d) { d.certificate_open = true; },
     [](const UiState& d) { return d.certificate_open; }},
};

// The demo with all that panels can show: an explained error, a report, a certificate.
std::shared_ptr<Snapshot> full() {
  auto snapshot = make::demo_explained("/runs/7/step_9000-report.html");
  auto certificate = std::make_shared<verbs::CertificateList>();
  for (int i = 0; i < 400; ++i)
    certificate->rows.push_back(
        {"layers." + std::to_string(i), verbs::TensorOutcome::kKept, 4, 0, ""});
  snapshot->certificate = certificate;
  return snapshot;
}

}  // namespace

TEST_CASE("what there is to press in a panel is inside of every window") {
  struct {
    ImVec2 size;
    float scale;
  } screens[] = {{{960, 540}, 1}, {{1280, 720}, 1}, {{1280, 720}, 2}, {{1280, 720}, 3}};
  for (const auto& screen : screens) {
    Driver driver(full(), screen.size, screen.scale);
    for (const OverlayRegion& panel : kPanels) {
      CAPTURE(panel.name);
      CAPTURE(screen.size.x);
      CAPTURE(screen.scale);
      driver.desk = UiState{};
      driver.desk.panel_state.error_text =
          driver.desk.panel_state.errors_open ? "" : "Size mismatch";
      panel.open(driver.desk);
      for (int i = 0; i < 4; ++i) driver.frame();
      REQUIRE(driver.marks.items.contains(panel.button));
      ImVec4 box = driver.marks.items.at(panel.button);
      CHECK(box.w <= screen.size.y);
      CHECK(box.z <= screen.size.x);
      driver.click(panel.button);
      CHECK_FALSE(panel.is_open(driver.desk));
    }
  }
}

TEST_CASE("a panel that is higher than the window is read to its end by keys") {
  Driver driver(full(), {1280, 720}, 2);
  driver.desk.mesh_open = true;
  for (int i = 0; i < 4; ++i) driver.frame();
  auto says = [&](std::string_view text) {
    return std::any_of(driver.marks.texts.begin(), driver.marks.texts.end(), [&](const auto& mark) {
      return mark.layer == 2 && mark.text.starts_with(text) && mark.box.w <= mark.clip.w &&
             mark.box.y >= mark.clip.y;
    });
  };
  CHECK(says("A repair that"));
  CHECK_FALSE(says("Outermost axis"));
  CHECK(driver.frame({{Key::kEnd}}).empty());
  driver.frame();
  driver.frame();
  CHECK(says("Outermost axis"));
  CHECK_FALSE(says("A repair that"));
  driver.frame({{Key::kHome}});
  driver.frame();
  driver.frame();
  CHECK(says("A repair that"));
}

TEST_CASE("no key of the list moves the selection behind a panel") {
  for (const OverlayRegion& panel : kPanels) {
    CAPTURE(panel.name);
    Driver driver(full());
    driver.frame();
    driver.frame();
    panel.open(driver.desk);
    driver.frame();
    driver.frame();
    for (Key key : {Key::kDown, Key::kPageDown, Key::kEnd, Key::kF8}) {
      auto commands = driver.frame({{key}});
      for (const Command& command : commands) CHECK_MESSAGE(commands.empty(), to_text(command));
    }
    driver.desk.map_has_keys = true;
    CHECK(driver.frame({{Key::kRight}}).empty());
  }
}

TEST_CASE("Shift+Escape stops what runs wherever the keyboard is") {
  Driver driver(make::demo_planned());
  driver.show(make::demo_planned(), busy_with("Checking"));
  KeyPress stop = key_of(Action::kCancel);
  auto stops = [&] {
    auto commands = driver.frame({stop});
    return commands.size() == 1 && std::holds_alternative<CancelCommand>(commands[0]);
  };
  driver.frame();
  CHECK(stops());
  driver.desk.mesh_open = true;
  driver.frame();
  CHECK(stops());
  CHECK(driver.desk.mesh_open);
  driver.desk.mesh_open = false;
  driver.click("filter");
  CHECK(ImGui::GetIO().WantTextInput);
  CHECK(stops());
}

TEST_CASE("the way back works while the filter has the keyboard") {
  auto snapshot = std::make_shared<Snapshot>(*make::demo_planned());
  snapshot->can_go_back = true;
  Driver driver(snapshot);
  driver.click("filter");
  CHECK(ImGui::GetIO().WantTextInput);
  auto commands = driver.frame({key_of(Action::kBack)});
  REQUIRE(commands.size() == 1);
  CHECK(std::get<GoCommand>(commands[0]).step == -1);
  CHECK(driver.frame({{Key::kLeft}}).empty());  // of the text
}

TEST_CASE("above a panel the palette opens, goes first, and puts away what its command hides") {
  Driver driver(make::demo_planned());
  driver.desk.mesh_open = true;
  driver.frame();
  driver.frame({key_of(Action::kPalette)});
  driver.frame();
  CHECK(driver.desk.palette_open);
  driver.frame({{Key::kEscape}});
  driver.frame();
  CHECK_FALSE(driver.desk.palette_open);
  CHECK(driver.desk.mesh_open);
  driver.frame({key_of(Action::kPalette)});
  driver.frame();
  driver.frame();
  driver.type("whole tensor");
  driver.frame({{Key::kEnter}});
  CHECK_FALSE(driver.desk.palette_open);
  CHECK_FALSE(driver.desk.mesh_open);
}

TEST_CASE("a panel takes the place of another by its key, and quitting and scaling work above") {
  Driver driver(make::demo_planned());
  driver.desk.mesh_open = true;
  driver.frame();
  driver.frame({key_of(Action::kExplain)});
  CHECK(driver.desk.explain_open);
  CHECK_FALSE(driver.desk.mesh_open);
  driver.frame({key_of(Action::kScaleUp)});
  CHECK(driver.desk.panel_state.settings.scale > 1);
  CHECK(driver.desk.explain_open);
  driver.frame({key_of(Action::kQuit)});
  CHECK(driver.desk.quit);
}

TEST_CASE("a key that is read in the palette can be pressed there") {
  Driver driver(make::demo_planned());
  driver.frame({key_of(Action::kPalette)});
  driver.frame();
  driver.frame();
  driver.frame({key_of(Action::kMesh)});
  CHECK(driver.desk.mesh_open);
  CHECK_FALSE(driver.desk.palette_open);
}

TEST_CASE("comparing opens its column where it is hidden, with the keyboard in its line") {
  Driver driver(make::demo_planned());
  driver.desk.layout.right.wanted = false;
  driver.frame();
  driver.frame();
  driver.frame({key_of(Action::kCompare)});
  for (int i = 0; i < 3; ++i) driver.frame();
  CHECK(driver.marks.items.contains("compare/path"));
  CHECK(ImGui::GetIO().WantTextInput);
  driver.type("/runs/8/step_9000");
  CHECK(driver.desk.compare_path == "/runs/8/step_9000");
}

TEST_CASE("the whole comes up from below the bytes, which are closed") {
  Driver driver(make::with_bytes(make::demo_planned()));
  driver.desk.bytes.open = true;
  driver.frame();
  driver.frame();
  auto commands = driver.frame({key_of(Action::kSummary)});
  CHECK(std::any_of(commands.begin(), commands.end(), [](const Command& command) {
    return std::holds_alternative<BytesCommand>(command);
  }));
  CHECK(driver.desk.summary_open);
}

TEST_CASE("the table comes up from below the bytes, and the whole from below the table") {
  Driver table(make::with_bytes(make::demo_planned()));
  table.desk.bytes.open = true;
  table.frame();
  table.frame();
  CHECK_FALSE(table.frame({key_of(Action::kTable)}).empty());
  CHECK(table.desk.table.open);
  table.show(make::demo_planned());
  table.frame();
  table.frame({key_of(Action::kSummary)});
  CHECK(table.desk.summary_open);
  CHECK_FALSE(table.desk.table.open);
}
