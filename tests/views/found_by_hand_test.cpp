// Defects that were found by using the desktop with a real mouse.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/formats/dcp/dcp_formats.h"
#include "core/model/builder.h"
#include "core/rules/check.h"
#include "make/snapshots.h"
#include "views/driver.h"
#include "views/imgui_versions.h"
#include "views/verdict.h"

using namespace shw;

namespace {

bool is_said(const Driver& driver, std::string_view part) {
  return std::any_of(driver.marks.texts.begin(), driver.marks.texts.end(),
                     [&](const auto& mark) { return mark.text.find(part) != std::string::npos; });
}

std::shared_ptr<Snapshot> with_recent(std::shared_ptr<Snapshot> snapshot) {
  verbs::RecentPlaces places;
  places.push_back({"/runs/7/step_9000", "/runs/7/spec.json", "", "", "findings", "1 finding"});
  places.push_back({"/runs/7/step_8000", "", "", "", "clean", "0 findings"});
  snapshot->recent = std::make_shared<const verbs::RecentPlaces>(places);
  return snapshot;
}

}  // namespace

TEST_CASE("while a proof runs the bar offers no second one") {
  auto snapshot = make::demo_repaired(false);
  JobState proof;
  proof.running = true;
  proof.verb = "verify";
  CHECK(verdict_of(*snapshot, {}, {}).next == Action::kVerify);
  CHECK_FALSE(verdict_of(*snapshot, proof, {}).next);
}

TEST_CASE("the tooltip at a tile tells its checksum, and a finding only where it is of that tile") {
  auto snapshot = std::make_shared<Snapshot>(*make::demo_planned());
  Driver driver(snapshot);
  driver.frame();
  driver.frame();
  move_mouse(driver.middle("map/saved"));
  driver.frame();
  driver.frame();
  CHECK(driver.marks.tooltip.find("CRC-32 not read yet") != std::string::npos);

  auto report = std::make_shared<CheckReport>(*snapshot->report);
  report->depth = Depth::kData;
  Finding damage;
  damage.rule = "bad-record";
  damage.subjects = {"another.tensor"};
  report->findings.push_back(damage);
  snapshot->report = report;
  driver.show(snapshot);
  driver.frame();
  driver.frame();
  CHECK(driver.marks.tooltip.find("CRC-32 matches") != std::string::npos);
  auto worse = std::make_shared<Snapshot>(*snapshot);
  auto again = std::make_shared<CheckReport>(*report);
  again->findings.back().subjects = {std::string(worse->checkpoint->fqn(*worse->tensor))};
  worse->report = again;
  driver.show(worse);
  driver.frame();
  driver.frame();
  CHECK(driver.marks.tooltip.find("CRC-32 see bad-record") != std::string::npos);

  // Unreadable items do not show a matching checksum, and missing files no good tile.
  auto says = [&](const char* rule, Severity severity, const std::string& subject,
                  const char* wanted) {
    CAPTURE(rule);
    auto other = std::make_shared<Snapshot>(*snapshot);
    auto told = std::make_shared<CheckReport>(*report);
    told->findings.back().rule = rule;
    told->findings.back().severity = severity;
    told->findings.back().subjects = {subject};
    other->report = told;
    driver.show(other);
    driver.frame();
    driver.frame();
    CHECK(driver.marks.tooltip.find(wanted) != std::string::npos);
  };
  const Checkpoint& c = *snapshot->checkpoint;
  says("not-looked-at", Severity::kInfo, std::string(c.fqn(*snapshot->tensor)),
       "CRC-32 could not be checked");
  std::string file;
  for (const FileRow& row : c.files()) {
    if (driver.marks.tooltip.find("\n" + row.path + "\n") != std::string::npos) file = row.path;
  }
  REQUIRE_FALSE(file.empty());
  says("missing-file", Severity::kError, file, "CRC-32 see missing-file");
}

TEST_CASE("a right click leads to the bytes and the values of that tile") {
  for (auto [item, asks] :
       {std::pair{"menu/Show the bytes", "bytes"}, std::pair{"menu/Show the values", "values"}}) {
    CAPTURE(item);
    Driver driver(make::demo_planned());
    driver.frame();
    driver.frame();
    move_mouse(driver.middle("map/saved"));
    driver.frame();
    press_mouse(true, 1);
    driver.frame();
    press_mouse(false, 1);
    driver.frame();
    driver.frame();
    REQUIRE(driver.marks.items.contains(item));
    auto commands = driver.click(item);
    CHECK(std::any_of(commands.begin(), commands.end(),
                      [&](const Command& command) { return to_text(command).starts_with(asks); }));
  }
}

TEST_CASE("what was opened before is one click away where nothing is open, with its spec") {
  for (ImVec2 size : {ImVec2{960, 540}, ImVec2{1280, 720}}) {
    CAPTURE(size.y);
    Driver driver(with_recent(std::make_shared<Snapshot>()), size, 1);
    driver.frame();
    driver.frame();
    for (const std::string& fault : driver.text_faults()) FAIL_CHECK(fault);
    auto commands = driver.click("open/recent/0");
    auto open = std::find_if(commands.begin(), commands.end(), [](const Command& command) {
      return std::holds_alternative<OpenCommand>(command);
    });
    REQUIRE(open != commands.end());
    CHECK(std::get<OpenCommand>(*open).path == "/runs/7/step_9000");
    CHECK(std::get<OpenCommand>(*open).spec == "/runs/7/spec.json");
  }
}

TEST_CASE("what to compare with is browsed for, and comparing opens nothing") {
  Driver driver(with_recent(std::make_shared<Snapshot>(*make::demo_planned())));
  driver.desk.compare_open = true;
  driver.frame();
  driver.click("compare/browse");
  CHECK(driver.desk.browser.open);
  driver.frame();
  driver.frame({{Key::kDown}});
  auto commands = driver.frame({{Key::kEnter}});
  REQUIRE(commands.size() == 1);
  CHECK(std::get<CompareCommand>(commands[0]).path == "/runs/7/step_9000");
  CHECK_FALSE(std::get<CompareCommand>(commands[0]).data);
  CHECK(driver.desk.compare_path == "/runs/7/step_9000");
  driver.frame({key_of(Action::kOpen)});
  driver.frame();
  driver.frame({{Key::kDown}});
  commands = driver.frame({{Key::kEnter}});
  CHECK(std::any_of(commands.begin(), commands.end(), [](const Command& command) {
    return std::holds_alternative<OpenCommand>(command);
  }));
}

TEST_CASE("a step of the plan comes before the plan's file, and a failure is reported in red") {
  auto snapshot = std::make_shared<Snapshot>(*make::demo_planned());
  auto edits = std::make_shared<PlanEdits>();
  auto edit = std::make_shared<PlanEdit>();
  edit->plan = edit->whole = snapshot->plan;
  edits->all = {edit};
  snapshot->edits = edits;
  Driver driver(snapshot);
  driver.desk.plan_open = true;
  for (int i = 0; i < 3; ++i) driver.frame();
  CHECK(driver.middle("plan/step/1").y < driver.middle("plan/file").y);

  driver.desk.plan_open = false;
  snapshot->error = Error{ErrorKind::kIo,
                          "1106332 bytes are needed there, and 0 are free",
                          {"/mnt/full"},
                          "choose a directory on another disk"};
  driver.show(snapshot);
  driver.frame();
  driver.frame();
  CHECK(is_said(driver, "0 are free. Choose a directory on another disk"));
}

TEST_CASE("the wheel reaches every command of the palette") {
  Driver driver(make::demo_planned(), {1280, 720}, 1);
  driver.frame({key_of(Action::kPalette)});
  driver.frame();
  driver.frame();
  CHECK_FALSE(driver.marks.items.contains(std::string("palette/Quit")));
  bool seen = false;
  for (int i = 0; i < 40 && !seen; ++i) {
    turn_wheel(-1);
    driver.frame();
    seen = driver.marks.items.contains(std::string("palette/Quit"));
  }
  turn_wheel(0);
  driver.frame();
  CHECK(seen);
  CHECK(driver.desk.palette_row >= driver.desk.palette_first);
  for (const std::string& fault : driver.text_faults()) FAIL_CHECK(fault);
}

TEST_CASE("an error that keeps a checkpoint closed names what it speaks of") {
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->options.checkpoint = "/runs/7/logs/";
  snapshot->error = Error{ErrorKind::kUnsupported,
                          "is not a checkpoint that Shardwright recognises",
                          {"/runs/7/logs/"},
                          ""};
  Driver driver(snapshot);
  driver.frame();
  driver.frame();
  CHECK(is_said(driver, "logs is not a checkpoint"));
}

TEST_CASE("the bytes say what they are in words, and no number that reaches beyond them") {
  Driver driver(
      make::with_bytes(make::demo(),
                       verbs::BytesRecord{"model.weight", ChunkId{0}, {FileId{0}, 1000, 280}}),
      {2560, 1440});
  driver.frame();
  driver.frame();
  CHECK(is_said(driver, "byte 24 of local header of archive/data/0"));
  CHECK(is_said(driver, "recorded at byte 1,000, 280 bytes"));
  CHECK(is_said(driver, "u64 "));
  driver.desk.bytes.chosen = 2045;  // three bytes before the end
  driver.frame();
  CHECK(is_said(driver, "as u8 253, u16 65277"));
  CHECK_FALSE(is_said(driver, "u32 "));
}

TEST_CASE("a shape that has no room loses its spaces before it loses a number's middle") {
  bool was_narrow = false;
  for (float width = 640; width <= 1280; width += 16) {
    CAPTURE(width);
    Driver driver(make::demo_planned(), {width, 500});
    driver.frame();
    driver.frame();
    for (const TextMark& mark : driver.marks.texts)
      CHECK_FALSE((mark.text.starts_with('[') && mark.text.find("…") != std::string::npos));
    was_narrow = was_narrow || is_said(driver, "288×4096×1280");
  }
  CHECK(was_narrow);
}

TEST_CASE("an error about what was opened names it once") {
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->options.checkpoint = "/runs/7/orbax";
  snapshot->error = Error{ErrorKind::kUnsupported, "is an Orbax checkpoint", {"/runs/7/orbax"}, ""};
  Driver driver(snapshot);
  driver.frame();
  driver.frame();
  CHECK(is_said(driver, "opened"));
  CHECK_FALSE(std::any_of(driver.marks.texts.begin(), driver.marks.texts.end(),
                          [](const TextMark& mark) { return mark.text == "file"; }));
}

namespace {

// The demo with an additional finding about the tensor on the screen.
std::shared_ptr<Snapshot> demo_with(Finding finding) {
  auto snapshot = std::make_shared<Snapshot>(*make::demo_planned());
  finding.subjects = {std::string(snapshot->checkpoint->fqn(*snapshot->tensor))};
  auto report = std::make_shared<CheckReport>(*snapshot->report);
  report->findings.insert(report->findings.begin(), std::move(finding));
  snapshot->report = report;
  snapshot->finding = 0;
  return snapshot;
}

}  // namespace

TEST_CASE("the box where a saved part belongs is not drawn as missing") {
  Finding finding;
  finding.rule = "local-saved-as-global";
  const Box held{{0, 0, 0}, {9, 4096, 640}}, missing{{9, 0, 0}, {9, 4096, 640}};
  finding.evidence = {{"belongs_at", std::vector<Box>{held}},
                      {"missing_boxes", std::vector<Box>{missing}}};
  auto snapshot = demo_with(finding);
  auto picture = make_picture(*snapshot, *make_finding_effects(*snapshot));
  REQUIRE(picture != nullptr);
  REQUIRE(picture->missing.size() == 1);
  CHECK(picture->missing.front() == missing);
}

TEST_CASE("the map shows a box of the finding only on its own tensor, as lost and filled") {
  auto snapshot = std::make_shared<Snapshot>(*make::demo());
  const std::string fqn(snapshot->checkpoint->fqn(*snapshot->tensor));
  const Box here{{0, 0, 0}, {1, 2, 3}}, there{{4, 0, 0}, {1, 2, 3}};
  Finding finding;
  finding.rule = "filled-elements";
  finding.severity = Severity::kWarning;
  finding.subjects = {"another.weight", fqn};
  finding.evidence = {{"filled_with", std::vector<std::string>{"ones", "zeros"}},
                      {"lost_boxes", std::vector<Box>{there, here}}};
  const auto picture_of = [&] {
    auto report = std::make_shared<CheckReport>();
    report->findings = {finding};
    snapshot->report = report;
    return make_digest(snapshot)->picture;
  };
  CHECK(picture_of()->filled.empty());  // whose the boxes are is not said
  finding.evidence.emplace_back("lost_boxes_in", std::vector<std::string>{"another.weight", fqn});
  const auto picture = picture_of();
  REQUIRE(picture->filled.size() == 1);
  CHECK(picture->filled.front() == here);
  CHECK(picture->missing.empty());
  CHECK(picture->filled_note == "filled with zeros");
}

TEST_CASE("the map: a hole is not called filled because a repair filled another place") {
  auto snapshot = std::make_shared<Snapshot>(*make::demo());
  const std::string fqn(snapshot->checkpoint->fqn(*snapshot->tensor));
  const Box hole{{0, 0, 0}, {1, 2, 3}}, filled{{4, 0, 0}, {1, 2, 3}};
  Finding repaired, gap;
  repaired.rule = "filled-elements";
  repaired.severity = Severity::kWarning;
  repaired.subjects = {"another.weight", fqn};
  gap.rule = "coverage-gap";
  gap.severity = Severity::kError;
  gap.subjects = {fqn};
  gap.evidence = {{"missing_boxes", std::vector<Box>{hole}}};
  for (bool here : {false, true}) {
    repaired.evidence = {
        {"filled_with", std::vector<std::string>{"ones", "zeros"}},
        {"lost_boxes", std::vector<Box>{filled}},
        {"lost_boxes_in", std::vector<std::string>{here ? fqn : "another.weight"}}};
    auto report = std::make_shared<CheckReport>();
    report->findings = {repaired, gap};
    snapshot->report = report;
    const auto picture = make_digest(snapshot)->picture;
    CHECK(picture->missing == std::vector<Box>{hole});
    CHECK(picture->filled == (here ? std::vector<Box>{filled} : std::vector<Box>{}));
    CHECK(picture->filled_note == (here ? "filled with zeros" : ""));
  }
}

TEST_CASE("the map: overlaps of one finding about two tensors are drawn, each on its tensor") {
  CheckpointBuilder builder;
  builder.set_format(kDcpFormat);
  std::int64_t at = 0;
  for (const char* fqn : {"a", "b"}) {
    builder.add_tensor(fqn, Dtype::kFloat32, Extents{4});
    for (std::int64_t offset : {at == 0 ? 1 : 2, 0})
      builder.add_chunk(Extents{offset}, Extents{offset == 0 ? 3 : 4 - offset},
                        {builder.file("__0_0.distcp"), at++ * 16, 16});
  }
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->checkpoint = builder.finish();
  auto report = check(*snapshot->checkpoint, CheckOptions{});
  REQUIRE(report.has_value());
  snapshot->report = std::make_shared<CheckReport>(std::move(*report));
  for (std::uint32_t t : {0u, 1u}) {
    snapshot->tensor = TensorId{t};
    const auto picture = make_digest(snapshot)->picture;
    REQUIRE(picture->overlapping.size() == 1);
    CHECK(picture->overlapping.front() == (t == 0 ? Box{{1}, {2}} : Box{{2}, {1}}));
  }
}

TEST_CASE("three dots in a text stay on one line, however long the word behind them is") {
  Finding finding;
  finding.rule = "local-saved-as-global";
  finding.evidence = {
      {"what_to_do", std::string("save again with every rank taking part: get_model_state_dict("
                                 "..., StateDictOptions(full_state_dict=True)), or full_tensor() "
                                 "of each DTensor")}};
  Driver driver(demo_with(finding), {1280, 720});
  driver.frame();
  driver.frame();
  CHECK(is_said(driver, "get_model_state_dict(...,"));
  for (const TextMark& mark : driver.marks.texts) {
    CHECK(mark.text != ".");
    CHECK(mark.text != ",");
  }
}
