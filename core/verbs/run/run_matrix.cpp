#include "core/verbs/run/run_matrix.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>

#include "core/base/letter_case.h"
#include "core/base/natural_order.h"
#include "core/base/words.h"

namespace shw::verbs {
namespace {

// Length of the first word if all modules share it ("model."); the list of tensors omits it too.
std::size_t common_first_word_length(const std::vector<RunModule>& modules) {
  if (modules.empty()) return 0;
  const std::string_view first = modules[0].tensor;
  const std::size_t dot = first.find('.');
  if (dot == first.npos || dot + 1 >= first.size() || is_digit(first[dot + 1])) return 0;
  const std::string_view word = first.substr(0, dot + 1);
  const bool is_common = std::ranges::all_of(
      modules, [&](const RunModule& module) { return module.tensor.starts_with(word); });
  return is_common ? word.size() : 0;
}

// Length of the common prefix of all step names, without digits at its end: "step_".
std::size_t common_beginning(const RunSteps& run) {
  std::string_view common = run.steps.empty() ? std::string_view() : run.steps[0].name;
  for (const RunStep& step : run.steps) {
    std::size_t same = 0;
    while (same < common.size() && same < step.name.size() && common[same] == step.name[same])
      ++same;
    common = common.substr(0, same);
  }
  while (!common.empty() && is_digit(common.back())) common.remove_suffix(1);
  const bool is_whole = std::ranges::any_of(
      run.steps, [&](const RunStep& step) { return step.name.size() == common.size(); });
  return is_whole ? 0 : common.size();
}

void add_rows(RunMatrix& matrix, const RunNumbers& numbers) {
  matrix.rows.push_back({"all modules", {}, 0});
  const std::vector<RunModule>& modules = *numbers.modules;
  const std::size_t prefix = common_first_word_length(modules);
  for (std::uint32_t m = 0; m < modules.size(); ++m) {
    std::string name = modules[m].name.substr(std::min(prefix, modules[m].name.size()));
    matrix.rows.push_back({name.empty() ? "top level" : std::move(name), m, 0});
  }
  std::stable_sort(
      matrix.rows.begin() + 1, matrix.rows.end(),
      [](const RunMatrixRow& a, const RunMatrixRow& b) { return natural_less(a.name, b.name); });
}

const ModuleNumbers* numbers_in(const StepNumbers& step, const RunMatrixRow& row) {
  if (!row.module) return step.all.tensors != 0 ? &step.all : nullptr;
  if (*row.module >= step.modules.size()) return nullptr;
  const ModuleNumbers& numbers = step.modules[*row.module];
  return numbers.tensors != 0 ? &numbers : nullptr;
}

RunCell cell_of(const StepNumbers* step, const RunMatrixRow& row) {
  RunCell cell;
  if (step == nullptr) return cell;
  const ModuleNumbers* numbers = numbers_in(*step, row);
  cell.state = step->error          ? RunCell::State::kFailed
               : numbers == nullptr ? RunCell::State::kAbsent
                                    : RunCell::State::kCounted;
  if (cell.state != RunCell::State::kCounted) return cell;
  cell.is_whole = numbers->unread == 0 && (row.module || step->files_unread == 0);
  cell.norm = numbers->norm();
  cell.nan = numbers->nan;
  cell.infinite = numbers->infinite;
  return cell;
}

// Norms are only comparable over the same number of finite elements.
void set_relative_norm_change(RunCell& cell, const ModuleNumbers* now,
                              const ModuleNumbers* before) {
  if (now == nullptr || before == nullptr || before->elements != now->elements) return;
  if (cell.is_anomalous() || before->nan + before->infinite != 0) return;
  const double old = before->norm();
  cell.has_change = true;
  if (old > 0)
    cell.change = static_cast<float>((cell.norm - old) / old);
  else
    cell.change = cell.norm > 0 ? 1.0f : 0.0f;
}

void fill_row(RunMatrix& matrix, const std::vector<const StepNumbers*>& steps, std::size_t r) {
  RunMatrixRow& row = matrix.rows[r];
  bool was_odd = false;
  for (std::size_t s = steps.size(); s-- > 0;) {
    RunCell& cell = matrix.cells[r * steps.size() + s];
    cell = cell_of(steps[s], row);
    if (cell.state != RunCell::State::kCounted) continue;
    cell.begins = cell.is_anomalous() && !was_odd;
    was_odd = was_odd || cell.is_anomalous();
    const StepNumbers* before = s + 1 < steps.size() ? steps[s + 1] : nullptr;
    set_relative_norm_change(
        cell, numbers_in(*steps[s], row),
        before != nullptr && !before->error ? numbers_in(*before, row) : nullptr);
    row.most_change = std::max(row.most_change, std::abs(cell.change));
  }
}

std::optional<FirstAnomaly> find_first_anomaly(const RunMatrix& matrix) {
  for (const bool is_nan : {true, false}) {
    auto odd = [&](std::size_t row, std::size_t step) {
      const RunCell& cell = matrix.cell(row, step);
      return is_nan ? cell.nan : cell.infinite;
    };
    for (std::size_t step = matrix.steps(); step-- > 0;) {
      if (odd(0, step) == 0) continue;
      FirstAnomaly first{step, 1, 0, is_nan, false};
      for (std::size_t row = 1; row < matrix.rows.size(); ++row) {
        first.rows += odd(row, step) != 0 ? 1 : 0;
        if (odd(row, step) > odd(first.row, step)) first.row = row;
      }
      return first;
    }
  }
  return std::nullopt;
}

}  // namespace

RunMatrix make_run_matrix(const RunSteps& run, const RunNumbers* numbers) {
  RunMatrix matrix;
  if (numbers != nullptr && numbers->path != run.path) numbers = nullptr;
  std::vector<const StepNumbers*> steps;
  const std::size_t common = common_beginning(run);
  for (const RunStep& step : run.steps) {
    const StepNumbers* known = numbers != nullptr ? numbers_of(*numbers, step) : nullptr;
    steps.push_back(known);
    matrix.step_names.push_back(step.name.substr(common));
    if (known == nullptr) {
      matrix.bytes_left += step.bytes;
      continue;
    }
    ++matrix.counted;
    matrix.failed += known->error ? 1 : 0;
    matrix.incomplete += !known->error && !known->is_whole() ? 1 : 0;
  }
  if (matrix.counted == 0 || numbers->modules == nullptr) return matrix;
  add_rows(matrix, *numbers);
  matrix.cells.resize(matrix.rows.size() * matrix.steps());
  for (std::size_t r = 0; r < matrix.rows.size(); ++r) fill_row(matrix, steps, r);
  matrix.by_change.resize(matrix.rows.size());
  std::iota(matrix.by_change.begin(), matrix.by_change.end(), std::size_t{0});
  std::stable_sort(matrix.by_change.begin() + 1, matrix.by_change.end(),
                   [&](std::size_t a, std::size_t b) {
                     return matrix.rows[a].most_change > matrix.rows[b].most_change;
                   });
  matrix.first_anomaly = find_first_anomaly(matrix);
  if (matrix.first_anomaly)
    matrix.first_anomaly->is_proved = std::all_of(
        steps.begin() + static_cast<std::ptrdiff_t>(matrix.first_anomaly->step), steps.end(),
        [](const StepNumbers* step) { return step != nullptr && step->is_whole(); });
  return matrix;
}

std::string first_anomaly_text(const RunSteps& run, const RunMatrix& matrix) {
  std::string left;
  if (matrix.counted < run.steps.size())
    left += ". " + plural(run.steps.size() - matrix.counted, "step") + " not counted";
  if (matrix.failed != 0) left += ". " + plural(matrix.failed, "step") + " could not be opened";
  if (matrix.incomplete != 0)
    left += ". " + plural(matrix.incomplete, "step") + " could not be read completely";
  if (!matrix.first_anomaly) {
    const std::size_t read = matrix.counted - matrix.failed;
    if (read == 0) return "Nothing was read" + left;
    return "No NaN or infinite element in the data read of " + plural(read, "step") + left;
  }
  const FirstAnomaly& first = *matrix.first_anomaly;
  const RunCell& cell = matrix.cell(first.row, first.step);
  std::string text = std::string(first.is_nan ? "First NaN" : "First infinite element") +
                     (first.is_proved ? " at " : " in what was read: ") +
                     run.steps[first.step].name + ": " + matrix.rows[first.row].name + ", " +
                     plural(first.is_nan ? cell.nan : cell.infinite, "element");
  if (first.rows > 1) text += ", and in " + plural(first.rows - 1, "other module");
  return text + left;
}

}  // namespace shw::verbs
