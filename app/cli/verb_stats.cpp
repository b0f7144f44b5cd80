#include <algorithm>

#include "app/cli/verbs.h"
#include "core/report/statistics_report.h"
#include "core/verbs/run/run_statistics.h"
#include "core/verbs/run/run_steps.h"

namespace shw::cli {
namespace {

// Refuses options that --by-step lacks: it reads steps one after the other on the CPU of this
// process.
Status check_by_step_options(const Context& context) {
  if (!context.options.names.empty())
    return fail(ErrorKind::kUsage, "--by-step counts all tensors by module", {},
                "Remove the names, or give one step: its tensors can be selected.");
  if (context.team != nullptr)
    return fail(ErrorKind::kUsage, "--by-step cannot run in several processes", {},
                "Start it once, without --processes mpi.");
  return {};
}

int run_stats_by_step(Context& context) {
  if (auto allowed = check_by_step_options(context); !allowed)
    return fail_with(context, allowed.error());
  auto run = [&] {
    ProgressLine line(context.terminal, context.progress);
    return verbs::run_statistics(context.options.checkpoint, &context.progress);
  }();
  if (!run) return fail_with(context, run.error());
  if (context.options.json)
    print_answer(context, run_to_json(*run));
  else
    context.terminal.out(run_to_text(*run, style_of(context)));
  return std::ranges::all_of(run->steps, &RunStepReport::is_whole) ? kClean : kUndecided;
}

}  // namespace

int run_stats(Context& context) {
  if (context.options.by_step) return run_stats_by_step(context);
  auto opened = open_all(context);
  if (!opened) return fail_with(context, opened.error());
  auto told = [&] {
    ProgressLine line(context.terminal, context.progress);
    return verbs::stats(*opened, context.options.names, device_options(context), &context.progress,
                        context.team);
  }();
  if (!told) return fail_with(context, told.error());
  if (context.options.json) {
    print_answer(context, statistics_to_json(told->tensors, &told->device, told->unread));
  } else {
    context.terminal.out(statistics_to_text(told->tensors, style_of(context), told->unread));
  }
  print_device_use(context, told->device, "counted");
  if (verbs::is_run_folder(context.options.checkpoint))
    context.terminal.say("These are the numbers of one step. Add --by-step to count every step.");
  bool all = std::all_of(told->tensors.begin(), told->tensors.end(),
                         [](const TensorStatistics& tensor) { return tensor.is_whole(); });
  return all && told->unread.empty() ? kClean : kUndecided;
}

}  // namespace shw::cli
