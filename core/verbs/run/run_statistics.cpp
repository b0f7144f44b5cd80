#include "core/verbs/run/run_statistics.h"

#include <utility>

#include "core/verbs/run/run_matrix.h"

namespace shw::verbs {
namespace {

RunModuleReport module_report(std::string name, const ModuleNumbers& numbers, const RunCell& cell) {
  RunModuleReport report{std::move(name), numbers.elements, numbers.unread,
                         numbers.nan,     numbers.infinite, cell.norm};
  if (cell.has_change) report.change = cell.change;
  return report;
}

RunStepReport step_report(const RunSteps& run, const RunNumbers& numbers, const RunMatrix& matrix,
                          std::size_t s) {
  const RunStep& step = run.steps[s];
  RunStepReport report{step.name, step.path, step.time};
  const StepNumbers* counted = numbers_of(numbers, step);
  if (counted == nullptr) return report;
  report.error = counted->error;
  report.files_unread = counted->files_unread;
  for (std::size_t r = 0; r < matrix.rows.size(); ++r) {
    const RunCell& cell = matrix.cell(r, s);
    if (cell.state != RunCell::State::kCounted) continue;
    const RunMatrixRow& row = matrix.rows[r];
    if (row.module)
      report.modules.push_back(module_report(row.name, counted->modules[*row.module], cell));
    else
      report.all = module_report(row.name, counted->all, cell);
  }
  return report;
}

}  // namespace

Result<RunReport> run_statistics(const std::string& path, Progress* progress) {
  if (!is_run_folder(path))
    return fail(ErrorKind::kUsage, "this is not a folder of several checkpoints", {path, {}, {}},
                "Remove --by-step, or give the folder that holds the steps.");
  const RunSteps run = list_run(path);
  if (run.error) return tl::unexpected(*run.error);
  RunNumbers numbers;
  while (count_uncounted_steps(run, &numbers) != 0) {
    SHW_TRY(numbers, count_next_step(run, std::move(numbers), progress));
  }
  const RunMatrix matrix = make_run_matrix(run, &numbers);
  RunReport report{{}, first_anomaly_text(run, matrix)};
  if (run.not_read != 0)
    report.summary += ". " + std::to_string(run.not_read) + " older steps were not read";
  for (std::size_t s = 0; s < run.steps.size(); ++s)
    report.steps.push_back(step_report(run, numbers, matrix, s));
  return report;
}

}  // namespace shw::verbs
