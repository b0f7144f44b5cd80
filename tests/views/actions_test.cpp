// Every command of the palette, one row each: the session command that it emits, or its change of
// the desktop. A command without a row, or whose row does nothing, fails.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "make/snapshots.h"
#include "views/driver.h"
#include "views/imgui_versions.h"

using namespace shw;

namespace {

// Precondition of a command.
enum class Given : std::uint8_t {
  kPlanned,   // the demo, checked, with a plan
  kRepaired,  // and carried out
  kBytes,     // and looked into
  kValues,    // and its values are shown
  kCompared,
  kNamed,     // compared with a checkpoint of another program through a map
  kHalfMade,  // a repair was stopped
  kEdited,    // the plan was
  kBusy,      // a job runs
  kMany,      // layers that fold
  kRun,       // a step of a run, opened after its folder
  kSteps,     // the steps of a run
};

std::shared_ptr<Snapshot> make_given(Given what) {
  if (what == Given::kSteps) return make::run_of_steps(3, 2, false);
  auto s = what == Given::kRepaired ? make::demo_repaired(true)
           : what == Given::kMany   ? make::many_tensors(400)
                                    : make::demo_planned();
  s->can_go_back = s->can_go_forward = true;
  if (what == Given::kRun) {
    auto run = std::make_shared<verbs::RunSteps>();
    run->path = "/runs/7";
    s->run = run;
  }
  if (what == Given::kMany) s->tensor.reset();  // so that no fold is open
  if (what == Given::kRepaired) {
    s->can_undo = true;
    s->certificate = std::make_shared<const verbs::CertificateList>();
  }
  if (what == Given::kBytes) {
    auto look = std::make_shared<ShownBytes>();
    look->window = verbs::BytesWindow{};
    look->window->path = "__0_0.distcp";
    look->window->bytes.resize(64);
    look->window->file_size = 64;
    s->bytes = look;
  }
  if (what == Given::kValues) s = make::with_values(s);
  if (what == Given::kNamed) s = make::with_names(s);
  if (what == Given::kCompared) {
    auto both = std::make_shared<verbs::ComparedCheckpoints>();
    both->a = both->b = s->checkpoint;
    both->difference.tensors.resize(3);
    s->compared = both;
    s->compared_with = "/runs/7/step_8000";
  }
  if (what == Given::kHalfMade) s = make::with_stopped_run(s);
  if (what == Given::kEdited) {
    auto edits = std::make_shared<PlanEdits>();
    auto edit = std::make_shared<PlanEdit>();
    edit->plan = edit->whole = s->plan;
    edits->all = {edit, edit, edit};
    edits->now = 1;
    s->edits = edits;
  }
  return s;
}

// Made once: commands are read here, not carried out, so that nothing changes a snapshot.
std::shared_ptr<const Snapshot> given(Given what) {
  static std::map<Given, std::shared_ptr<const Snapshot>> made;
  auto& snapshot = made[what];
  if (snapshot == nullptr) snapshot = make_given(what);
  return snapshot;
}

using Sees = bool (*)(const Driver&);
struct Deed {
  Action action;
  Given given;
  const char* asks = "";  // beginning of the first command's text; empty: no command
  Sees sees = nullptr;    // true afterwards and false before
};

bool copied(std::string_view text) {
  return std::string_view(ImGui::GetClipboardText()).find(text) != std::string_view::npos;
}

template <TabRequest::Kind kKind>
bool asks_tabs(const Driver& driver) {
  return driver.tab_request && driver.tab_request->kind == kKind;
}

template <verbs::NewFile kFile>
bool asks_for_file(const Driver& driver) {
  return driver.desk.save.open && driver.desk.save.file == kFile;
}

const Deed kDeeds[] = {
    {Action::kOpenInTab, Given::kPlanned, "browse",
     [](const Driver& d) { return d.desk.browser.in_new_tab; }},
    {Action::kOpenReference, Given::kCompared, "", asks_tabs<TabRequest::Kind::kNew>},
    {Action::kNextTab, Given::kPlanned, "", asks_tabs<TabRequest::Kind::kShow>},
    {Action::kPreviousTab, Given::kPlanned, "", asks_tabs<TabRequest::Kind::kShow>},
    {Action::kShowSameTensorInNextTab, Given::kPlanned, "", asks_tabs<TabRequest::Kind::kShowSame>},
    {Action::kCloseTab, Given::kPlanned, "", asks_tabs<TabRequest::Kind::kClose>},
    {Action::kPalette, Given::kPlanned, "", [](const Driver& d) { return d.desk.palette_open; }},
    {Action::kFilter, Given::kPlanned, "",
     [](const Driver&) { return ImGui::GetIO().WantTextInput; }},
    {Action::kShowFindings, Given::kPlanned, "filter finding:*"},
    {Action::kShowAll, Given::kPlanned, "filter"},
    {Action::kNextFinding, Given::kPlanned, "finding 0"},
    {Action::kPreviousFinding, Given::kPlanned, "finding 0"},
    {Action::kReview, Given::kPlanned, "target", [](const Driver& d) { return d.desk.plan_open; }},
    // Commands that write only open the panel that shows what they would write (safety_test.cpp).
    {Action::kApply, Given::kPlanned, "target", [](const Driver& d) { return d.desk.plan_open; }},
    {Action::kApplyInPlace, Given::kPlanned, "target",
     [](const Driver& d) { return d.desk.plan_open; }},
    {Action::kDryRun, Given::kPlanned, "dry-run", [](const Driver& d) { return d.desk.plan_open; }},
    {Action::kPlanUndo, Given::kEdited, "target", [](const Driver& d) { return d.desk.plan_open; }},
    {Action::kPlanRedo, Given::kEdited, "target", [](const Driver& d) { return d.desk.plan_open; }},
    {Action::kResume, Given::kHalfMade, "",
     [](const Driver& d) { return d.desk.asked == Action::kResume; }},
    {Action::kRollBack, Given::kHalfMade, "",
     [](const Driver& d) { return d.desk.asked == Action::kRollBack; }},
    {Action::kCommit, Given::kRepaired, "",
     [](const Driver& d) { return d.desk.asked == Action::kCommit; }},
    {Action::kCertificate, Given::kRepaired, "",
     [](const Driver& d) { return d.desk.certificate_open; }},
    {Action::kCompare, Given::kPlanned, "", [](const Driver& d) { return d.desk.compare_open; }},
    {Action::kNextDifference, Given::kCompared, "difference 0"},
    {Action::kNamesMap, Given::kNamed, "", [](const Driver& d) { return d.desk.names.open; }},
    {Action::kLearnNames, Given::kCompared, "learn /runs/7/step_8000"},
    {Action::kPreviousDifference, Given::kCompared, "difference 2"},
    {Action::kVerify, Given::kRepaired, "verify"},
    {Action::kOpenRepaired, Given::kRepaired, "filter"},
    {Action::kUndo, Given::kRepaired, "",
     [](const Driver& d) { return d.desk.asked == Action::kUndo; }},
    {Action::kCheck, Given::kPlanned, "check"},
    {Action::kCheckData, Given::kPlanned, "check data"},
    {Action::kCancel, Given::kBusy, "cancel"},
    {Action::kPause, Given::kBusy, "pause"},
    {Action::kExplain, Given::kPlanned, "", [](const Driver& d) { return d.desk.explain_open; }},
    {Action::kMesh, Given::kPlanned, "", [](const Driver& d) { return d.desk.mesh_open; }},
    {Action::kCopyReport, Given::kPlanned, "",
     [](const Driver&) { return copied("placement-axis-moved"); }},
    {Action::kCopyName, Given::kPlanned, "", [](const Driver&) { return copied("down_proj"); }},
    {Action::kCopyCommand, Given::kPlanned, "",
     [](const Driver&) { return copied("shardwright check"); }},
    {Action::kSummary, Given::kPlanned, "", [](const Driver& d) { return d.desk.summary_open; }},
    {Action::kTensorNumbers, Given::kPlanned, "tensor-numbers"},
    {Action::kRanksPerNode, Given::kPlanned, "",
     [](const Driver& d) { return d.desk.summary_open && ImGui::GetIO().WantTextInput; }},
    {Action::kLeftColumn, Given::kPlanned, "",
     [](const Driver& d) { return !d.desk.layout.left.wanted; }},
    {Action::kRightColumn, Given::kPlanned, "",
     [](const Driver& d) { return !d.desk.layout.right.wanted; }},
    {Action::kZoomIn, Given::kPlanned, "", [](const Driver& d) { return d.desk.map.zoom > 2; }},
    {Action::kZoomOut, Given::kPlanned, "", [](const Driver& d) { return d.desk.map.zoom < 2; }},
    {Action::kZoomFit, Given::kPlanned, "", [](const Driver& d) { return d.desk.map.zoom == 1; }},
    {Action::kPreviousSlice, Given::kPlanned, "",
     [](const Driver& d) { return std::ranges::count(d.desk.map.slice.at, 0) == 1; }},
    {Action::kNextSlice, Given::kPlanned, "",
     [](const Driver& d) { return std::ranges::count(d.desk.map.slice.at, 1) == 1; }},
    {Action::kColourWriter, Given::kPlanned, "",
     [](const Driver& d) { return d.desk.colour_by == ColourBy::kWriter; }},
    {Action::kColourFile, Given::kPlanned, "",
     [](const Driver& d) { return d.desk.colour_by == ColourBy::kFile; }},
    {Action::kColourFinding, Given::kPlanned, "",
     [](const Driver& d) { return d.desk.colour_by == ColourBy::kFinding; }},
    {Action::kColourOdd, Given::kPlanned, "tile-values",
     [](const Driver& d) { return d.desk.colour_by == ColourBy::kNonFinite; }},
    {Action::kColourGreatest, Given::kPlanned, "tile-values",
     [](const Driver& d) { return d.desk.colour_by == ColourBy::kGreatest; }},
    {Action::kColourZeros, Given::kPlanned, "tile-values",
     [](const Driver& d) { return d.desk.colour_by == ColourBy::kZeros; }},
    {Action::kColourAxis, Given::kPlanned, "",
     [](const Driver& d) { return d.desk.colour_axis == 0; }},
    {Action::kReadTileValues, Given::kPlanned, "tile-values"},
    {Action::kSortRecorded, Given::kPlanned, "sort recorded"},
    {Action::kSortName, Given::kPlanned, "sort name"},
    {Action::kSortBytes, Given::kPlanned, "sort bytes desc"},
    {Action::kSortTiles, Given::kPlanned, "sort tiles desc"},
    {Action::kSortFindings, Given::kPlanned, "sort findings desc"},
    {Action::kFoldAll, Given::kMany, "", [](const Driver& d) { return !d.desk.folded.empty(); }},
    {Action::kUnfoldAll, Given::kMany, "",
     [](const Driver& d) { return !d.desk.unfolded.empty(); }},
    {Action::kReload, Given::kPlanned, "open"},
    {Action::kQuit, Given::kPlanned, "", [](const Driver& d) { return d.desk.quit; }},
    {Action::kShowBytes, Given::kPlanned, "bytes"},
    {Action::kShowFindingBytes, Given::kPlanned, "bytes finding"},
    {Action::kNextRecord, Given::kBytes, "bytes next"},
    {Action::kPreviousRecord, Given::kBytes, "bytes previous"},
    {Action::kCopyBytes, Given::kBytes, "", [](const Driver&) { return copied("00 00 00 00"); }},
    {Action::kShowValues, Given::kPlanned, "values"},
    {Action::kGoToIndex, Given::kPlanned, "values"},
    {Action::kNextValue, Given::kValues, "values next-nan"},
    {Action::kSaveNpy, Given::kValues, "place npy", asks_for_file<verbs::NewFile::kNpy>},
    {Action::kSaveCsv, Given::kValues, "place csv", asks_for_file<verbs::NewFile::kCsv>},
    {Action::kTable, Given::kPlanned, "", [](const Driver& d) { return d.desk.table.open; }},
    {Action::kOpen, Given::kPlanned, "browse", [](const Driver& d) { return d.desk.browser.open; }},
    {Action::kBack, Given::kPlanned, "go back"},
    {Action::kForward, Given::kPlanned, "go forward"},
    {Action::kSettings, Given::kPlanned, "",
     [](const Driver& d) { return d.desk.panel_state.settings_open; }},
    {Action::kNextTheme, Given::kPlanned, "",
     [](const Driver& d) { return d.desk.panel_state.settings.theme == verbs::UiTheme::kLight; }},
    {Action::kDarkTheme, Given::kPlanned, "",
     [](const Driver& d) { return d.desk.panel_state.settings.theme == verbs::UiTheme::kDark; }},
    {Action::kLightTheme, Given::kPlanned, "",
     [](const Driver& d) { return d.desk.panel_state.settings.theme == verbs::UiTheme::kLight; }},
    {Action::kContrastTheme, Given::kPlanned, "",
     [](const Driver& d) {
       return d.desk.panel_state.settings.theme == verbs::UiTheme::kContrast;
     }},
    {Action::kScaleUp, Given::kPlanned, "",
     [](const Driver& d) { return d.desk.panel_state.settings.scale > 1.5; }},
    {Action::kScaleDown, Given::kPlanned, "",
     [](const Driver& d) { return d.desk.panel_state.settings.scale < 1.5; }},
    {Action::kScaleReset, Given::kPlanned, "",
     [](const Driver& d) { return d.desk.panel_state.settings.scale == 1; }},
    {Action::kExplainError, Given::kPlanned, "",
     [](const Driver& d) { return d.desk.panel_state.errors_open; }},
    {Action::kReport, Given::kPlanned, "place report", asks_for_file<verbs::NewFile::kReport>},
    {Action::kSaveView, Given::kPlanned, "place view", asks_for_file<verbs::NewFile::kView>},
    {Action::kHashes, Given::kPlanned, "place hashes", asks_for_file<verbs::NewFile::kHashes>},
    {Action::kPins, Given::kPlanned, "",
     [](const Driver& d) { return d.desk.panel_state.pins_open; }},
    {Action::kExportPng, Given::kPlanned, "place png", asks_for_file<verbs::NewFile::kPng>},
    {Action::kExportSvg, Given::kPlanned, "place svg", asks_for_file<verbs::NewFile::kSvg>},
    {Action::kOpenDemo, Given::kPlanned, "demo"},
    {Action::kTour, Given::kPlanned, "",
     [](const Driver& d) { return d.desk.panel_state.tour_step >= 0; }},
    {Action::kExpect, Given::kPlanned, "",
     [](const Driver& d) { return d.desk.panel_state.expect_open; }},
    {Action::kWriteAs, Given::kPlanned, "", [](const Driver& d) { return d.desk.write.open; }},
    {Action::kRun, Given::kRun, "filter"},
    {Action::kRunNumbers, Given::kSteps, "run-numbers"},
};

// The desktop before the command, without any of its effects.
void set_up(Driver& driver, const Deed& deed) {
  UiState& desk = driver.desk;
  desk.panel_state.cache_folder = "/tmp/cache";
  auto zooms = {Action::kZoomIn, Action::kZoomOut, Action::kZoomFit};
  if (std::find(zooms.begin(), zooms.end(), deed.action) != zooms.end()) desk.map.zoom = 2;
  auto scales = {Action::kScaleUp, Action::kScaleDown, Action::kScaleReset};
  if (std::find(scales.begin(), scales.end(), deed.action) != scales.end())
    desk.panel_state.settings.scale = 1.5;
  if (deed.action == Action::kPreviousSlice) std::ranges::fill(desk.map.slice.at, 1);
  if (deed.action == Action::kNextSlice) std::ranges::fill(desk.map.slice.at, 0);
  if (deed.action == Action::kNamesMap) desk.names.open = false;
  if (deed.action == Action::kDarkTheme) desk.panel_state.settings.theme = verbs::UiTheme::kLight;
  if (deed.action == Action::kColourWriter) desk.colour_by = ColourBy::kFile;
  driver.tabs.tabs.resize(2);
  ImGui::SetClipboardText("");
}

std::vector<Command> choose(Driver& driver, const ActionRow& row) {
  driver.frame({key_of(Action::kPalette)});
  driver.frame();
  driver.frame();
  auto all = driver.type(row.name);
  REQUIRE_MESSAGE(driver.marks.items.contains(std::string("palette/") + row.name), row.name);
  for (Command& command : driver.click(std::string("palette/") + row.name))
    all.push_back(std::move(command));
  return all;
}

// Triggers commands by their key too, if they have one.
void check_deed(const Deed& deed, const ActionRow& row, bool by_key) {
  CAPTURE(row.name);
  CAPTURE(by_key);
  Driver driver(given(deed.given));
  JobState job;
  job.running = deed.given == Given::kBusy;
  job.title = "Checking";
  driver.show(given(deed.given), job);
  driver.frame();
  driver.frame();
  set_up(driver, deed);
  driver.frame();
  if (deed.sees != nullptr) CHECK_FALSE(deed.sees(driver));
  auto commands = by_key ? driver.frame({row.key}) : choose(driver, row);
  for (int i = 0; i < 3; ++i) driver.frame();  // a field gets the keyboard focus two frames later
  std::string said = commands.empty() ? "" : to_text(commands.front());
  std::string asks = deed.asks;
  if (asks.empty())
    CHECK_MESSAGE(commands.empty(), said);
  else
    CHECK_MESSAGE(said.starts_with(asks), said);
  if (deed.sees != nullptr) CHECK(deed.sees(driver));
  CHECK((deed.sees != nullptr || !asks.empty()));
}

}  // namespace

TEST_CASE("every command of the palette does what its name says, and by its key too") {
  std::set<Action> driven;
  for (const Deed& deed : kDeeds) {
    const ActionRow& row =
        *std::find_if(all_actions().begin(), all_actions().end(),
                      [&](const ActionRow& each) { return each.action == deed.action; });
    CHECK_MESSAGE(driven.insert(deed.action).second, row.name);
    // The palette cannot open itself.
    if (deed.action != Action::kPalette) check_deed(deed, row, false);
    if (row.key.key != Key::kNone) check_deed(deed, row, true);
  }
  for (const ActionRow& row : all_actions()) CHECK_MESSAGE(driven.contains(row.action), row.name);
}

TEST_CASE("every action has a row of its own, at its place in the table") {
  REQUIRE(all_actions().size() == kActionCount);
  for (std::size_t i = 0; i < kActionCount; ++i) {
    const ActionRow& row = all_actions()[i];
    CAPTURE(i);
    REQUIRE(row.name != nullptr);
    CHECK(row.action == static_cast<Action>(i));
    CHECK((row.is_possible != nullptr && row.run != nullptr));
  }
}
