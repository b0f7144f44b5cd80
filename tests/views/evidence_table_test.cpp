// Lists of evidence as tables, whose names and offsets are clicked; values and exports next to
// them.
#include "views/panels/evidence_table.h"
#include "views/evidence_rows.h"

#include <doctest/doctest.h>

#include "app/gui/view_state.h"
#include "make/snapshots.h"
#include "views/driver.h"

using namespace shw;

namespace {

// A finding about two tensors of a checkpoint, each with its record and its box.
std::shared_ptr<Snapshot> with_lists() {
  auto snapshot = std::make_shared<Snapshot>(*make::demo());
  const Checkpoint& c = *snapshot->checkpoint;
  const std::string a(c.fqn(TensorId{0})), b(c.fqn(TensorId{1})), file = c.file(FileId{0}).path;
  Finding finding;
  finding.rule = "short-file";
  finding.cause = "A file ends early.";
  finding.subjects = {file};
  finding.evidence = {
      {"files", std::vector<std::string>{file + " is not there"}},
      {"items",
       std::vector<std::string>{a + ": " + file + " [128, 256)", b + ": " + file + " [256, 300)"}},
      {"elements_of", std::vector<std::string>{a + ": 4 of 13 elements", b + ": 1 of 3 elements"}},
      {"tensors", std::vector<std::string>{a, b}},
      {"tensor_count", std::int64_t{2}},
      {"ranks", std::vector<std::string>{"0", "1"}}};
  auto report = std::make_shared<CheckReport>();
  report->findings = {finding};
  snapshot->report = report;
  snapshot->finding = 0;
  return snapshot;
}

}  // namespace

TEST_CASE("evidence: lists about the same names are one table, with places to go to") {
  const auto snapshot = with_lists();
  const Checkpoint& c = *snapshot->checkpoint;
  const auto tables = evidence_tables(c, snapshot->report->findings[0]);
  REQUIRE(tables.size() == 2);  // ranks have no place
  CHECK(tables[0].label == "files");
  CHECK(tables[0].rows[0].place.file == c.file(FileId{0}).path);
  CHECK(tables[0].rows[0].detail == "is not there");
  CHECK(tables[1].label == "tensors");
  REQUIRE(tables[1].rows.size() == 2);
  const EvidenceRow& row = tables[1].rows[1];
  CHECK(row.name == c.fqn(TensorId{1}));
  CHECK(row.place.tensor == row.name);
  CHECK(row.detail.find("1 of 3 elements") != std::string::npos);
  CHECK(row.detail_place.file == c.file(FileId{0}).path);
  CHECK(row.detail_place.offset == 256);
}

TEST_CASE("evidence: a click on a tensor goes to it, one on its record shows the bytes") {
  const auto snapshot = with_lists();
  const Checkpoint& c = *snapshot->checkpoint;
  Driver driver(snapshot);
  driver.frame();
  auto commands = driver.click("evidence/tensors/1");
  REQUIRE(commands.size() == 1);
  CHECK(std::get<SelectTensorCommand>(commands[0]).fqn == c.fqn(TensorId{1}));
  commands = driver.click("evidence/tensors/1/detail");
  REQUIRE(commands.size() == 1);
  CHECK(std::get<BytesCommand>(commands[0]).at == 256);
  CHECK_FALSE(driver.marks.items.contains("evidence/tensor_count"));
}

TEST_CASE("view line: panel, colours, zoom and slice are written and read again") {
  UiState state;
  state.table.open = true;
  state.colour_by = ColourBy::kZeros;
  state.matrix_by = MatrixBy::kNorm;
  state.isolated = 7;
  state.map.zoom = 2.25;
  state.map.pan_row = 3;
  state.map.leads_after = true;
  state.map.slice.row = 1;
  state.map.slice.column = 2;
  state.map.slice.at = {5, 0, 0};
  const std::string line = view_state_to_line(state);
  UiState read;
  REQUIRE(restore_view_from_line(line, TensorId{4}, read));
  REQUIRE(read.requested_place.has_value());
  CHECK(read.requested_place->tensor == TensorId{4});
  read.map.zoom = read.requested_place->zoom;
  read.map.pan_row = read.requested_place->pan_row;
  read.map.pan_column = read.requested_place->pan_column;
  read.map.leads_after = read.requested_place->leads_after;
  read.map.slice = read.requested_place->slice;
  CHECK(view_state_to_line(read) == line);
}

TEST_CASE("view line: a line that is none is refused, and nothing changes") {
  for (const char* line : {"view panel", "view panel=none", "view colour=red", "view zoom=0",
                           "view zoom=nan", "view pan=1", "view of=saved", "view axis=-2",
                           "view at=1,x", "views", "view matrix=9", "view x=1"}) {
    CAPTURE(line);
    UiState state;
    CHECK_FALSE(restore_view_from_line(line, TensorId{0}, state));
    CHECK(view_state_to_line(state) == view_state_to_line(UiState{}));
  }
}

TEST_CASE("finding: a step that its evidence suggests is offered as a plan to look at") {
  auto snapshot = std::make_shared<Snapshot>(*make::damaged());
  auto report = std::make_shared<CheckReport>(*snapshot->report);
  const std::string step = R"({"step":"permute-dims","tensors":["a"],"order":[1,0]})";
  report->findings.front().evidence.emplace_back("suggested_step", step);
  report->findings.front().remedy.reset();
  snapshot->report = report;
  snapshot->finding = 0;
  Driver driver(snapshot);
  for (int i = 0; i < 3; ++i) driver.frame();
  const auto commands = driver.click("finding/step");
  REQUIRE(commands.size() == 1);
  CHECK(std::get<PlanCommand>(commands[0]).then == step);
  CHECK(driver.desk.plan_open);
}
