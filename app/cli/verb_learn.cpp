#include "app/cli/verbs.h"
#include "core/maps/write_map.h"
#include "core/report/learn_report.h"
#include "core/verbs/learn.h"

namespace shw::cli {

int run_learn(Context& context) {
  const Options& options = context.options;
  auto learned = [&] {
    ProgressLine line(context.terminal, context.progress);
    return verbs::learn(options.checkpoint, options.against, options.out, &context.progress);
  }();
  if (!learned) return fail_with(context, learned.error());
  const bool is_written = !options.out.empty() && !learned->rows.empty();
  const LearnedPaths paths{options.checkpoint, options.against, is_written ? options.out : ""};
  if (options.json) {
    print_answer(context, learned_to_json(*learned, paths));
  } else if (options.out.empty()) {
    // Prints the map to stdout and everything else to stderr.
    if (!learned->rows.empty()) context.terminal.out(map_to_json(learned->map));
    std::string text = learned_to_text(*learned, paths);
    text.erase(text.find_last_not_of('\n') + 1);
    context.terminal.say(text);
  } else {
    context.terminal.out(learned_to_text(*learned, paths));
  }
  return learned->is_all_explained() ? kClean : kFindings;
}

}  // namespace shw::cli
