#include <algorithm>

#include "app/cli/verbs.h"
#include "core/report/statistics_report.h"

namespace shw::cli {

int run_stats(Context& context) {
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
  bool all = std::all_of(told->tensors.begin(), told->tensors.end(),
                         [](const TensorStatistics& tensor) { return tensor.is_whole(); });
  return all && told->unread.empty() ? kClean : kUndecided;
}

}  // namespace shw::cli
