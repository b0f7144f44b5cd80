// Statistics of a run: the matrix of modules by steps, and its text.
#include "core/verbs/run/run_matrix.h"

#include <doctest/doctest.h>

#include "make/snapshots.h"
#include "views/driver.h"
#include "views/verdict.h"

using namespace shw;
using verbs::RunCell;
using verbs::RunMatrix;

namespace {

std::size_t row_named(const RunMatrix& matrix, const std::string& name) {
  for (std::size_t row = 0; row < matrix.rows.size(); ++row) {
    if (matrix.rows[row].name == name) return row;
  }
  return matrix.rows.size();
}

RunMatrix matrix_of(const Snapshot& snapshot) {
  return make_run_matrix(*snapshot.run, snapshot.run_numbers.get());
}

// The snapshot without the numbers of one step.
std::shared_ptr<Snapshot> not_counted(const Snapshot& snapshot, const std::string& step) {
  auto changed = std::make_shared<Snapshot>(snapshot);
  auto numbers = std::make_shared<verbs::RunNumbers>(*snapshot.run_numbers);
  numbers->steps.erase(step);
  changed->run_numbers = numbers;
  return changed;
}

template <class C>
const C* matrix_command(const std::vector<Command>& commands) {
  for (const Command& command : commands) {
    if (const auto* found = std::get_if<C>(&command)) return found;
  }
  return nullptr;
}

}  // namespace

TEST_CASE(
    "run matrix: rows are all modules, then modules in natural order without the first word") {
  const RunMatrix matrix = matrix_of(*make::run_of_steps(6, 12, true));
  REQUIRE(matrix.rows.size() == 25);
  CHECK(matrix.rows[0].name == "all modules");
  CHECK(matrix.rows[1].name == "layers.0.mlp");
  CHECK(matrix.rows.back().name == "layers.11.self_attn");
  CHECK(matrix.step_names[0] == "600");
}

TEST_CASE("run matrix: a change is against the step before, and the oldest step has none") {
  const RunMatrix matrix = matrix_of(*make::run_of_steps(2, 4, true));
  const std::size_t row = row_named(matrix, "layers.3.self_attn");
  CHECK_FALSE(matrix.cell(row, 1).has_change);
  REQUIRE(matrix.cell(row, 0).has_change);
  const double change = matrix.cell(row, 0).norm / matrix.cell(row, 1).norm - 1;
  CHECK(static_cast<double>(matrix.cell(row, 0).change) == doctest::Approx(change));
}

TEST_CASE("run matrix: steps with another number of elements are not compared") {
  auto snapshot = make::run_of_steps(2, 4, true);
  auto numbers = std::make_shared<verbs::RunNumbers>(*snapshot->run_numbers);
  auto step = std::make_shared<verbs::StepNumbers>(*numbers->steps.at("step_200"));
  step->modules[0].elements += 1;
  numbers->steps["step_200"] = step;
  snapshot->run_numbers = numbers;
  const RunMatrix matrix = matrix_of(*snapshot);
  CHECK_FALSE(matrix.cell(row_named(matrix, "layers.0.self_attn"), 0).has_change);
  CHECK(matrix.cell(row_named(matrix, "layers.0.mlp"), 0).has_change);
}

TEST_CASE("run matrix: the first NaN is named with its step and module") {
  const auto snapshot = make::run_of_steps(6, 12, true);
  const RunMatrix matrix = matrix_of(*snapshot);
  REQUIRE(matrix.first_anomaly);
  CHECK(matrix.first_anomaly->is_proved);
  CHECK(first_anomaly_text(*snapshot->run, matrix) ==
        "First NaN at step_300: layers.5.mlp, 12 elements");
  CHECK(matrix.cell(row_named(matrix, "layers.5.mlp"), 3).begins);
  CHECK_FALSE(matrix.cell(row_named(matrix, "layers.5.mlp"), 0).begins);
}

TEST_CASE("run matrix: a NaN is not called the first while an older step is not counted") {
  const auto snapshot = not_counted(*make::run_of_steps(6, 12, true), "step_100");
  const RunMatrix matrix = matrix_of(*snapshot);
  CHECK(first_anomaly_text(*snapshot->run, matrix) ==
        "First NaN in what was read: step_300: layers.5.mlp, 12 elements. 1 step not counted");
}

TEST_CASE("run matrix: without NaN it says so of what was read alone") {
  const auto all = make::run_of_steps(2, 4, true);
  CHECK(first_anomaly_text(*all->run, matrix_of(*all)) ==
        "No NaN or infinite element in the data read of 2 steps");
  const auto some = not_counted(*all, "step_100");
  CHECK(first_anomaly_text(*some->run, matrix_of(*some)) ==
        "No NaN or infinite element in the data read of 1 step. 1 step not counted");
}

TEST_CASE("run matrix: a click on a cell opens that step at the tensor with the NaN") {
  const auto snapshot = make::run_of_steps(6, 12, true);
  const std::size_t row = row_named(matrix_of(*snapshot), "layers.5.mlp");
  Driver driver(snapshot);
  driver.frame();
  driver.frame();
  auto commands = driver.click("run/cell/" + std::to_string(row) + "/3");
  const auto* open = matrix_command<OpenCommand>(commands);
  REQUIRE(open != nullptr);
  CHECK(open->path == "/runs/7/step_300");
  CHECK(open->tensor == "model.layers.5.mlp.down_proj.weight");
}

TEST_CASE("run matrix: the button of the first NaN opens it") {
  Driver driver(make::run_of_steps(6, 12, true));
  driver.frame();
  driver.frame();
  auto commands = driver.click("run/first-odd");
  const auto* open = matrix_command<OpenCommand>(commands);
  REQUIRE(open != nullptr);
  CHECK(open->path == "/runs/7/step_300");
  CHECK(open->tensor == "model.layers.5.mlp.down_proj.weight");
}

TEST_CASE("run matrix: keys choose a module and a step, and Enter opens the step there") {
  Driver driver(make::run_of_steps(6, 12, true));
  driver.frame();
  driver.frame({{Key::kDown, true, false, false}});
  driver.frame({{Key::kDown, true, false, false}});
  driver.frame({{Key::kDown}});
  driver.frame({{Key::kDown}});
  driver.frame({{Key::kDown}});
  auto commands = driver.frame({{Key::kEnter}});
  const auto* open = matrix_command<OpenCommand>(commands);
  REQUIRE(open != nullptr);
  CHECK(open->path == "/runs/7/step_300");
  CHECK(open->tensor == "model.layers.0.mlp.weight");
}

TEST_CASE("run matrix: numbers are counted by the button alone, never by themselves") {
  Driver driver(make::run_of_steps(3, 4, false));
  for (int i = 0; i < 5; ++i) CHECK(matrix_command<RunNumbersCommand>(driver.frame()) == nullptr);
  CHECK(matrix_command<RunNumbersCommand>(driver.click("run/count")) != nullptr);
}

TEST_CASE("run matrix: the button says how many steps are left, and goes when all are counted") {
  const auto snapshot = make::run_of_steps(6, 12, true);
  Driver driver(not_counted(*snapshot, "step_600"));
  driver.frame();
  CHECK(driver.marks.items.contains("run/count"));
  driver.show(snapshot);
  driver.frame();
  CHECK_FALSE(driver.marks.items.contains("run/count"));
}

TEST_CASE("run matrix: no text is cut off or is on another one") {
  for (ImVec2 size : {ImVec2{960, 560}, ImVec2{1440, 900}, ImVec2{2560, 1440}}) {
    for (std::size_t steps : {2u, 6u, 40u, 700u}) {
      Driver driver(make::run_of_steps(steps, 24, true), size);
      driver.marks.wants_texts = true;
      driver.frame();
      driver.frame();
      CAPTURE(steps);
      CAPTURE(size.x);
      CHECK(driver.text_faults().empty());
    }
  }
}

TEST_CASE("run matrix: the chosen step stays among the columns that fit") {
  Driver driver(make::run_of_steps(700, 12, true), {960, 560});
  driver.frame();
  for (int i = 0; i < 600; ++i) driver.frame({{Key::kDown}});
  CHECK(driver.desk.run.row == 600);
  CHECK(driver.desk.run.newest_column <= 600);
  CHECK(driver.marks.items.contains("run/cell/0/600"));
}

TEST_CASE("run matrix: the banner names NaN that were counted, and is not calm then") {
  const auto snapshot = make::run_of_steps(6, 12, true);
  const VerdictText text = verdict_of(*snapshot, {}, {});
  CHECK(text.title == "6 steps: 6 without a finding; NaN in 3 steps");
  CHECK(text.tone == Tone::kBad);
  CHECK(verdict_of(*make::run_of_steps(2, 4, true), {}, {}).tone == Tone::kOk);
}
