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
  of_another_plan.needs_of = std::make_shared<const Plan>(*unknown->plan);
  panel.examine(of_another_plan);
  CHECK(refuses(panel));
  verbs::RepairTarget refused = examined;
  refused.refused = Error{ErrorKind::kUsage, "is there already, and is never replaced"};
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
    if (one.is_writing) job.on_stop = StopEffect::kDiscarded;
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
  job.on_stop = StopEffect::kResumable;
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

namespace {

// Everything that a driver draws, as one text.
std::string drawn_text(const Driver& driver) {
  std::string text;
  for (const TextMark& mark : driver.marks.texts) text += mark.text + " ";
  return text;
}

std::vector<Command> answer(Driver& driver, const char* button, bool yes) {
  CHECK(driver.click(button).empty());
  for (int i = 0; i < 3; ++i) driver.frame();
  return driver.click(yes ? "question/yes" : "question/no");
}

}  // namespace

TEST_CASE("stopped: the card is in every view, with or without a plan, findings or a report") {
  std::vector<std::shared_ptr<Snapshot>> views = {make::healthy(), make::demo(),
                                                  make::demo_planned(), make::damaged(),
                                                  make::demo_repaired(true)};
  auto unchecked = std::make_shared<Snapshot>(*make::healthy());
  unchecked->report = nullptr;
  views.push_back(unchecked);
  views.push_back(make::with_values(make::healthy()));
  for (const auto& view : views) {
    {
      Driver without(view);
      without.frame();
      CHECK_FALSE(without.marks.items.contains("stopped/resume"));
    }
    for (bool shows_summary : {false, true}) {
      Driver driver(make::with_stopped_run(std::make_shared<Snapshot>(*view)));
      driver.desk.summary_open = shows_summary;
      driver.frame();
      driver.frame();
      CHECK(driver.marks.items.contains("stopped/resume"));
      CHECK(driver.marks.items.contains("stopped/discard"));
    }
  }
}

TEST_CASE("stopped: in a folder of steps the card opens what is made of, or discards it") {
  auto steps = make::with_stopped_run(make::run_of_steps(3, 2, false));
  Driver driver(steps);
  driver.frame();
  driver.frame();
  CHECK_FALSE(driver.marks.items.contains("stopped/resume"));
  const auto opened = driver.click("stopped/open");
  REQUIRE(opened.size() == 2);
  CHECK(std::get<OpenCommand>(opened[0]).path == first_stopped_run(*steps)->checkpoint);
  const auto discarded = answer(driver, "stopped/discard", true);
  REQUIRE(discarded.size() == 1);
  CHECK(std::holds_alternative<RollBackCommand>(discarded[0]));
}

TEST_CASE("stopped: Resume shows the plan of the journal, and asks") {
  auto snapshot = make::with_stopped_run(make::demo_planned());
  verbs::StoppedRuns runs = *snapshot->stopped;
  auto plan = std::make_shared<Plan>(*snapshot->plan);
  plan->operations.resize(1);
  plan->operations[0].text = "mask 4 elements of the journal";
  runs.runs[0].plan = plan;
  snapshot->stopped = std::make_shared<const verbs::StoppedRuns>(runs);
  Driver driver(snapshot, {1440, 900}, 1);
  driver.frame();
  CHECK(answer(driver, "stopped/resume", false).empty());
  driver.click("stopped/resume");
  for (int i = 0; i < 3; ++i) driver.frame();
  REQUIRE(driver.desk.asked == Action::kResume);
  const std::string& question = driver.desk.asked_text;
  CHECK(question.find("mask 4 elements of the journal") != std::string::npos);
  CHECK(question.find("zeros") != std::string::npos);
  CHECK(question.find(runs.runs[0].output) != std::string::npos);
  CHECK(question.find("12 files") != std::string::npos);
  CHECK(driver.text_faults().empty());
  const auto commands = driver.click("question/yes");
  REQUIRE(commands.size() == 2);
  CHECK(std::get<ResumeCommand>(commands[0]).folder == runs.runs[0].folder);
  CHECK(std::holds_alternative<VerifyCommand>(commands[1]));
}

TEST_CASE("stopped: Discard asks with the folder and its bytes, and about that folder alone") {
  auto snapshot = make::with_stopped_run(make::healthy());
  const verbs::StoppedRun run = *first_stopped_run(*snapshot);
  Driver driver(snapshot);
  CHECK(answer(driver, "stopped/discard", false).empty());
  const auto commands = answer(driver, "stopped/discard", true);
  REQUIRE(commands.size() == 1);
  CHECK(std::get<RollBackCommand>(commands[0]).folder == run.folder);
  driver.click("stopped/discard");
  CHECK(driver.desk.asked_text.find(run.folder) != std::string::npos);
  CHECK(driver.desk.asked_text.find(human_bytes(run.bytes)) != std::string::npos);
  auto other = std::make_shared<Snapshot>(*snapshot);
  verbs::StoppedRuns runs = *snapshot->stopped;
  runs.runs[0].folder += "8";
  other->stopped = std::make_shared<const verbs::StoppedRuns>(runs);
  driver.show(other);
  driver.frame();
  CHECK_FALSE(driver.desk.asked.has_value());
}

TEST_CASE("stopped: what a process works on, and what has changed, is not resumed") {
  auto snapshot = make::with_stopped_run(make::healthy());
  verbs::StoppedRuns runs = *snapshot->stopped;
  const auto items_of = [&] {
    auto shown = std::make_shared<Snapshot>(*snapshot);
    shown->stopped = std::make_shared<const verbs::StoppedRuns>(runs);
    Driver driver(shown);
    driver.frame();
    driver.frame();
    return std::pair(driver.marks.items.contains("stopped/resume"),
                     driver.marks.items.contains("stopped/discard"));
  };
  CHECK(items_of() == std::pair(true, true));
  runs.runs[0].not_resumable = Error{ErrorKind::kDamaged, "has changed", {"/runs/7/step_9000/a"}};
  CHECK(items_of() == std::pair(false, true));
  runs.runs[0].in_use = Error{ErrorKind::kUsage, "is being made right now"};
  CHECK(items_of() == std::pair(false, false));
}

TEST_CASE("stopped: after a cancel no command for a terminal is named") {
  auto snapshot = make::with_stopped_run(make::demo_planned());
  snapshot->error = Error{ErrorKind::kCancelled,
                          "stopped on request",
                          {},
                          "go on with `shardwright resume /runs/7/step_9000-repaired`"};
  for (bool opens_plan : {false, true}) {
    Driver driver(snapshot);
    driver.frame();
    driver.desk.plan_open = opens_plan;
    for (int i = 0; i < 3; ++i) driver.frame();
    CHECK(drawn_text(driver).find("shardwright resume") == std::string::npos);
    CHECK(driver.marks.items.contains(opens_plan ? "plan/resume" : "stopped/resume"));
  }
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
      return is_command || driver.desk.habits.picture_wanted != PictureFile::kNone;
    };
    CHECK_FALSE(is_written(by_palette(driver, action, true)));
    REQUIRE(driver.desk.save.open);
    CHECK_FALSE(is_written(press_enter(driver)));
    auto placed = make::with_place(*snapshot, file, "/runs/7/some-file");
    driver.show(placed);
    for (int i = 0; i < 3; ++i) driver.frame();
    CHECK(driver.text_faults().empty());
    CHECK(drawn_text(driver).find("/runs/7/some-file") != std::string::npos);
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
    driver.desk.habits.picture_wanted = PictureFile::kNone;
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
