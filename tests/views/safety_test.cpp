// A single wrong key or click never writes, undoes or stops anything.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>

#include "make/snapshots.h"
#include "views/driver.h"

using namespace shw;

namespace {

constexpr KeyPress kCtrlEnter{Key::kEnter, true, false, false};

bool writes(const std::vector<Command>& commands) {
  for (const Command& command : commands) {
    const std::string text = to_text(command);
    for (const char* verb : {"repair", "undo", "commit", "resume", "roll-back"}) {
      if (text.starts_with(verb)) return true;
    }
  }
  return false;
}

std::vector<Command> by_palette(Driver& driver, Action action, bool by_enter) {
  driver.frame({key_of(Action::kPalette)});
  driver.frame();
  driver.frame();
  std::vector<Command> all = driver.type(row_of(action).name);
  const std::string row = std::string("palette/") + row_of(action).name;
  for (Command& command : by_enter ? driver.frame({{Key::kEnter}}) : driver.click(row))
    all.push_back(std::move(command));
  driver.frame();
  return all;
}

std::shared_ptr<Snapshot> repaired_in_place() {
  auto snapshot = std::make_shared<Snapshot>(*make::demo_planned());
  snapshot->can_undo = true;
  return snapshot;
}

}  // namespace

TEST_CASE("a repair begins only with its plan in sight") {
  for (Action action : {Action::kApply, Action::kApplyInPlace}) {
    CAPTURE(row_of(action).name);
    for (bool by_enter : {true, false}) {
      Driver driver(make::demo_planned());
      driver.frame();
      CHECK_FALSE(writes(by_palette(driver, action, by_enter)));
      CHECK(driver.desk.plan_open);
      CHECK_FALSE(driver.desk.palette_open);
      // The palette over the panel does not write either.
      CHECK_FALSE(writes(by_palette(driver, action, by_enter)));
    }
  }
  Driver driver(make::demo_planned());
  driver.frame();
  CHECK_FALSE(writes(driver.frame({kCtrlEnter})));
  CHECK(driver.desk.plan_open);
  driver.frame();
  CHECK(writes(driver.frame({kCtrlEnter})));
}

namespace {

// The panel with a plan, on the folder that was examined for what is typed.
struct PlanPanel {
  Driver driver;
  std::shared_ptr<Snapshot> snapshot;
  explicit PlanPanel(std::shared_ptr<Snapshot> shown, const std::string& typed = {})
      : driver(shown, {1440, 1600}), snapshot(shown) {
    driver.frame();
    driver.desk.plan_open = true;
    driver.frame();
    driver.desk.out = typed;
    driver.frame();
  }
  // Shows the snapshot with another target.
  void examine(const verbs::RepairTarget& target) {
    snapshot = std::make_shared<Snapshot>(*snapshot);
    snapshot->target = std::make_shared<const verbs::RepairTarget>(target);
    driver.show(snapshot);
    driver.frame();
    driver.frame();
  }
  bool offers_to_write() const { return driver.marks.items.contains("plan/apply"); }
};

}  // namespace

TEST_CASE("apply: it carries the plan and the folder that are shown") {
  const std::pair<std::shared_ptr<Snapshot>, const char*> kTyped[] = {
      {make::with_target(make::demo_planned(), "/runs/7/mended"), "  /runs/7/mended "},
      {make::demo_planned(), " "}};
  for (const auto& [snapshot, typed] : kTyped) {
    PlanPanel panel(snapshot, typed);
    const auto commands = panel.driver.frame({kCtrlEnter});
    REQUIRE_FALSE(commands.empty());
    const auto* repair = std::get_if<RepairCommand>(&commands[0]);
    REQUIRE(repair != nullptr);
    CHECK(repair->plan == snapshot->edits->edit().hash);
    CHECK(repair->options.out == snapshot->target->path);
  }
}

TEST_CASE("apply: nothing is written before the folder that is typed was examined for this plan") {
  const auto refuses = [](PlanPanel& panel) {
    panel.driver.frame();
    return !panel.offers_to_write() && !writes(panel.driver.frame({kCtrlEnter}));
  };
  auto unknown = make::demo_planned();
  const verbs::RepairTarget examined = *unknown->target;
  unknown->target = nullptr;
  PlanPanel panel(unknown);
  CHECK(refuses(panel));
  panel.examine(examined);
  CHECK(panel.offers_to_write());
  panel.driver.desk.out = "/runs/7/other";
  CHECK(refuses(panel));
  panel.driver.desk.out.clear();
  verbs::RepairTarget of_another_plan = examined;
  of_another_plan.plan_of_needs = std::make_shared<const Plan>(*unknown->plan);
  panel.examine(of_another_plan);
  CHECK(refuses(panel));
  verbs::RepairTarget refused = examined;
  refused.refused = Error{ErrorKind::kUsage, "already exists, and is never replaced"};
  panel.examine(refused);
  CHECK(refuses(panel));
  panel.examine(examined);
  CHECK(writes(panel.driver.frame({kCtrlEnter})));
}

TEST_CASE("apply: a folder whose examination was lost is examined again") {
  auto unknown = make::demo_planned();
  unknown->target = nullptr;
  PlanPanel panel(unknown);
  int asked = 0;
  for (int i = 0; i < 200; ++i) {
    for (const Command& command : panel.driver.frame())
      asked += std::holds_alternative<TargetCommand>(command) ? 1 : 0;
  }
  CHECK(asked > 0);
  CHECK(asked < 5);
}

TEST_CASE("apply: Ctrl+Enter in another text field of the panel ends what is typed there") {
  auto snapshot = make::lossy();
  auto edits = std::make_shared<PlanEdits>(*snapshot->edits);
  auto edit = std::make_shared<PlanEdit>(edits->edit());
  edit->json = "{}";
  edits->all = {edit};
  snapshot->edits = edits;
  for (const char* field : {"plan/file", "plan/text", "plan/fill-path"}) {
    CAPTURE(field);
    PlanPanel panel(snapshot);
    panel.driver.desk.plan.text_open = panel.driver.desk.fill_open = true;
    panel.driver.click(field);
    REQUIRE(ImGui::GetIO().WantTextInput);
    CHECK_FALSE(writes(panel.driver.frame({kCtrlEnter})));
  }
  PlanPanel panel(snapshot);
  panel.driver.click("plan/out");
  REQUIRE(ImGui::GetIO().WantTextInput);
  CHECK(writes(panel.driver.frame({kCtrlEnter})));
}

TEST_CASE("apply: nothing is written while the plan lacks what was typed into its panel") {
  auto snapshot = make::lossy();
  auto edits = std::make_shared<PlanEdits>(*snapshot->edits);
  auto edit = std::make_shared<PlanEdit>(edits->edit());
  edit->json = "{}";
  edits->all = {edit};
  snapshot->edits = edits;
  {
    PlanPanel text(snapshot);
    text.driver.desk.plan.text_open = true;
    text.driver.frame();
    CHECK(text.offers_to_write());
    text.driver.desk.plan.text = "{\"plan\": 2}";
    text.driver.frame();
    CHECK_FALSE(text.offers_to_write());
    text.driver.desk.plan.text_open = false;
    text.driver.frame();
    CHECK(text.offers_to_write());
  }
  PlanPanel fill(snapshot);
  fill.driver.desk.fill_open = true;
  fill.driver.desk.fill_path = "/runs/7/step_8000";
  fill.driver.frame();
  fill.driver.frame();
  CHECK_FALSE(fill.offers_to_write());
  fill.snapshot = std::make_shared<Snapshot>(*snapshot);
  fill.snapshot->options.fill = "from:/runs/7/step_8000";
  fill.driver.show(fill.snapshot);
  fill.driver.frame();
  CHECK(fill.offers_to_write());
}

TEST_CASE("apply: a disk that shows too little room is asked about") {
  PlanPanel panel(make::demo_planned());
  verbs::RepairTarget small = *panel.snapshot->target;
  small.needs = 5'000'000'000'000;
  panel.examine(small);
  CHECK_FALSE(writes(panel.driver.frame({kCtrlEnter})));
  REQUIRE(panel.driver.desk.asked == Action::kApply);
  for (int i = 0; i < 3; ++i) panel.driver.frame();
  CHECK_FALSE(writes(panel.driver.click("question/no")));
  CHECK_FALSE(writes(panel.driver.click("plan/apply")));
  for (int i = 0; i < 3; ++i) panel.driver.frame();
  CHECK(writes(panel.driver.click("question/yes")));
}

TEST_CASE("undo and commit ask first, and no key says yes") {
  for (Action action : {Action::kUndo, Action::kCommit}) {
    CAPTURE(row_of(action).name);
    Driver driver(repaired_in_place());
    driver.frame();
    CHECK_FALSE(writes(by_palette(driver, action, true)));
    REQUIRE(driver.desk.asked == action);
    for (KeyPress key : {KeyPress{Key::kEnter}, KeyPress{Key::kSpace}, kCtrlEnter})
      CHECK_FALSE(writes(driver.frame({key})));
    REQUIRE(driver.desk.asked == action);
    driver.frame({{Key::kEscape}});
    CHECK_FALSE(driver.desk.asked.has_value());
    by_palette(driver, action, true);
    CHECK_FALSE(writes(driver.click("question/no")));
    CHECK_FALSE(driver.desk.asked.has_value());
    by_palette(driver, action, true);
    CHECK(writes(driver.click("question/yes")));
    CHECK_FALSE(driver.desk.asked.has_value());
  }
}

TEST_CASE("quit: every job that writes, or has read for a while, is asked about and named") {
  struct Case {
    bool by_window, is_concurrent, is_writing;
    double seconds;
  };
  const Case kCases[] = {{true, false, true, 0.5},   {false, true, true, 0.5},
                         {false, false, false, 600}, {true, true, false, 600},
                         {false, false, false, 0.5}, {true, true, false, 0.5}};
  for (const Case& one : kCases) {
    CAPTURE(one.by_window);
    CAPTURE(one.is_concurrent);
    CAPTURE(one.is_writing);
    CAPTURE(one.seconds);
    JobState job;
    job.running = true;
    job.title = "Hashing every tensor";
    job.seconds = one.seconds;
    if (one.is_writing) job.stop_effect = StopEffect::kOutputDiscarded;
    const auto snapshot = make::lossy();
    Driver driver(snapshot);
    if (one.is_concurrent)
      driver.show(snapshot, {}, {job});
    else
      driver.show(snapshot, job);
    driver.frame();
    if (one.by_window) driver.desk.quit_wanted = true;
    driver.frame(one.by_window ? std::vector<KeyPress>{} : std::vector{key_of(Action::kQuit)});
    const bool asks = one.is_writing || one.seconds > 60;
    CHECK(driver.desk.quit != asks);
    CHECK(driver.desk.asked.has_value() == asks);
    if (!asks) continue;
    CHECK(driver.desk.asked_text.find(job.title) != std::string::npos);
    driver.frame();
    CHECK(driver.text_faults().empty());
    driver.click("question/yes");
    CHECK(driver.desk.quit);
  }
}

TEST_CASE("a question whose job has ended goes away by itself") {
  JobState job;
  job.running = true;
  job.stop_effect = StopEffect::kResumable;
  job.title = "Repairing";
  Driver driver(make::demo_planned());
  driver.show(make::demo_planned(), job);
  driver.frame();
  driver.frame({key_of(Action::kQuit)});
  REQUIRE(driver.desk.asked.has_value());
  driver.show(make::demo_planned());
  driver.frame();
  driver.frame();
  CHECK_FALSE(driver.desk.asked.has_value());
  CHECK_FALSE(driver.desk.quit);
}

TEST_CASE("apply: the folder that was typed is forgotten with the panel and with the checkpoint") {
  {
    PlanPanel closed(make::demo_planned(), "/runs/7/mended");
    closed.driver.click("plan/close");
    CHECK(closed.driver.desk.out.empty());
  }
  {
    PlanPanel escaped(make::demo_planned(), "/runs/7/mended");
    escaped.driver.frame({{Key::kEscape}});
    CHECK(escaped.driver.desk.out.empty());
  }
  PlanPanel other(make::demo_planned(), "/runs/7/mended");
  CHECK(other.driver.desk.out == "/runs/7/mended");
  other.driver.show(make::lossy());
  other.driver.frame();
  CHECK(other.driver.desk.plan_open);
  CHECK(other.driver.desk.out.empty());
}

namespace {

std::vector<Command> press_enter(Driver& driver) {
  ImGui::GetIO().KeysDown[ImGuiKey_Enter] = true;
  std::vector<Command> all = driver.frame();
  ImGui::GetIO().KeysDown[ImGuiKey_Enter] = false;
  for (Command& command : driver.frame()) all.push_back(std::move(command));
  return all;
}

}  // namespace

TEST_CASE("save: no key or click writes a file before its place is shown, and Enter does then") {
  const std::pair<Action, verbs::NewFile> kFiles[] = {
      {Action::kReport, verbs::NewFile::kReport}, {Action::kSaveView, verbs::NewFile::kView},
      {Action::kHashes, verbs::NewFile::kHashes}, {Action::kSaveNpy, verbs::NewFile::kNpy},
      {Action::kSaveCsv, verbs::NewFile::kCsv},   {Action::kExportPng, verbs::NewFile::kPng},
      {Action::kExportSvg, verbs::NewFile::kSvg}};
  for (const auto& [action, file] : kFiles) {
    CAPTURE(row_of(action).name);
    auto snapshot = make::with_values(make::demo_planned());
    Driver driver(snapshot, {1280, 720}, 1);
    driver.frame();
    const auto is_written = [&](const std::vector<Command>& commands) {
      const bool is_command = std::ranges::any_of(commands, [](const Command& command) {
        const std::string text = to_text(command);
        return std::ranges::any_of(std::array{"report", "view-save", "hash", "values-save"},
                                   [&](const char* verb) { return text.starts_with(verb); });
      });
      return is_command || driver.desk.panel_state.picture_wanted != PictureFile::kNone;
    };
    CHECK_FALSE(is_written(by_palette(driver, action, true)));
    REQUIRE(driver.desk.save.open);
    CHECK_FALSE(is_written(press_enter(driver)));
    auto placed = make::with_place(*snapshot, file, "/runs/7/some-file");
    driver.show(placed);
    for (int i = 0; i < 3; ++i) driver.frame();
    CHECK(driver.text_faults().empty());
    CHECK(driver.drawn_text().find("/runs/7/some-file") != std::string::npos);
    auto refused = std::make_shared<Snapshot>(*placed);
    auto place = std::make_shared<verbs::NewFilePlace>(*placed->place);
    place->refused = Error{ErrorKind::kUsage, "is there already", {"/runs/7/some-file"}};
    refused->place = place;
    driver.show(refused);
    for (int i = 0; i < 3; ++i) driver.frame();
    CHECK_FALSE(driver.marks.items.contains("save/write"));
    CHECK_FALSE(is_written(press_enter(driver)));
    driver.show(placed);
    driver.frame();
    CHECK(is_written(press_enter(driver)));
    CHECK_FALSE(driver.desk.save.open);
    // A place of an earlier opening is examined again.
    driver.desk.panel_state.picture_wanted = PictureFile::kNone;
    by_palette(driver, action, true);
    REQUIRE(driver.desk.save.open);
    CHECK_FALSE(is_written(press_enter(driver)));
    CHECK_FALSE(driver.marks.items.contains("save/write"));
    driver.show(make::with_place(*snapshot, file, "/runs/7/some-file-2"));
    CHECK(is_written(driver.click("save/write")));
  }
}

TEST_CASE("safety: every byte of another machine is read only after a question with the amount") {
  auto snapshot = std::make_shared<Snapshot>(*make::healthy());
  snapshot->options.checkpoint = "ssh://host/runs/7/step_9000";
  {
    Driver driver(snapshot);
    CHECK(driver.frame({key_of(Action::kCheckData)}).empty());
    for (int i = 0; i < 3; ++i) driver.frame();
    REQUIRE(driver.desk.asked == Action::kCheckData);
    const auto commands = driver.click("question/yes");
    REQUIRE(commands.size() == 1);
    CHECK(std::get<CheckCommand>(commands[0]).depth == Depth::kData);
    driver.frame();
    CHECK_FALSE(driver.desk.asked.has_value());
  }
  {
    Driver local(make::healthy());
    CHECK(local.frame({key_of(Action::kCheckData)}).size() == 1);
  }
  auto compared = std::make_shared<Snapshot>(*make::healthy());
  compared->reference = compared->checkpoint;
  compared->options.against = "ssh://host/runs/7/step_8000";
  Driver against(compared);
  CHECK(against.frame({key_of(Action::kCheckData)}).empty());
  CHECK(against.desk.asked == Action::kCheckData);
}
