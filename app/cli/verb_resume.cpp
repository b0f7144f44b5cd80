// resume, commit: finish or remove killed work, and delete undo data.
#include "app/cli/verbs.h"
#include "core/io/store.h"
#include "core/report/answers.h"
#include "core/report/listing.h"
#include "core/report/report.h"
#include "core/verbs/resume.h"

namespace shw::cli {
namespace {

int roll_back(Context& context) {
  auto taken = verbs::roll_back(posix_store(), context.options.checkpoint);
  if (!taken) return fail_with(context, taken.error());
  if (context.options.json) {
    print_answer(context, rolled_back_to_json(*taken));
    return kClean;
  }
  for (const std::string& folder : *taken) {
    context.terminal.out_line(folder == context.options.checkpoint
                                  ? "the checkpoint is as it was before the repair"
                                  : "taken away: " + printable(folder));
  }
  return kClean;
}

}  // namespace

int run_resume(Context& context) {
  const Options& options = context.options;
  if (options.roll_back && context.team != nullptr)
    return fail_with(context, {ErrorKind::kUsage,
                               "several processes cannot remove an unfinished result",
                               {},
                               "do it in one process"});
  if (options.roll_back) return roll_back(context);
  auto resumed = [&] {
    ProgressLine line(context.terminal, context.progress);
    return verbs::resume(posix_store(), options.checkpoint,
                         {options.memory, device_options(context), context.team},
                         &context.progress);
  }();
  if (!resumed) return fail_with(context, resumed.error());
  const RepairResult& result = resumed->result;
  print_reused_work(context, result);
  print_device_use(context, result.device);
  print_traffic(context, result.traffic);
  if (options.json) {
    print_answer(context, finished_to_json(result));
    return kClean;
  }
  TextStyle style = style_of(context);
  context.terminal.out_line(inked(style, result.lossless ? Ink::kGreen : Ink::kGold,
                                  resumed->was_already_finished ? "complete already" : "finished") +
                            ", " + result_loss_text(result) + "\n" + out_of_range_to_text(result) +
                            damage_to_text(result) + other_ranks_to_text(result) +
                            left_out_to_text(result) + "  checkpoint   " +
                            printable(result.output) + "\n  certificate  " +
                            printable(result.certificate));
  context.terminal.say(next_steps_text(result.output, false));
  return kClean;
}

int run_commit(Context& context) {
  auto committed = verbs::commit(posix_store(), context.options.checkpoint);
  if (!committed) return fail_with(context, committed.error());
  if (context.options.json) {
    print_answer(context, committed_to_json(context.options.checkpoint));
  } else {
    context.terminal.out("the repair is now permanent: undo is no longer possible\n");
  }
  return kClean;
}

}  // namespace shw::cli
