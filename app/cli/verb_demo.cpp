#include "app/cli/verbs.h"
#include "core/report/answers.h"
#include "core/verbs/demo.h"

namespace shw::cli {

int run_demo(Context& context) {
  const std::string& folder = context.options.subject;
  auto made = [&] {
    ProgressLine line(context.terminal, context.progress);
    return make_demo(folder, &context.progress);
  }();
  if (!made) return fail_with(context, made.error());
  if (context.options.json) {
    print_answer(context, demo_to_json(made->checkpoint, made->spec));
    return kClean;
  }
  context.terminal.out_line(printable(made->checkpoint) + "\n" + printable(made->spec));
  context.terminal.say(
      "A mixture of experts that 64 ranks saved, three of its tensors with the "
      "wrong placements. Next:\n  shardwright check " +
      printable(made->checkpoint) + " --spec " + printable(made->spec));
  return kClean;
}

}  // namespace shw::cli
