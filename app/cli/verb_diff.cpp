#include "app/cli/verbs.h"
#include "core/report/difference_report.h"
#include "core/verbs/diff.h"

namespace shw::cli {

int run_diff(Context& context) {
  const Options& options = context.options;
  verbs::DiffOptions asked;
  asked.only = options.subject;
  asked.mapping = options.mapping;
  CompareOptions& compared = asked.compare;
  const bool is_near = options.absolute || options.relative;
  if (is_near) compared.tolerance = {options.absolute.value_or(0), options.relative.value_or(0)};
  compared.data = options.depth == Depth::kData || is_near;
  compared.memory = options.memory;
  auto told = [&] {
    ProgressLine line(context.terminal, context.progress);
    return verbs::diff(options.checkpoint, options.against, asked, &context.progress);
  }();
  if (!told) return fail_with(context, told.error());
  if (told->is_empty) {
    context.terminal.say("No name of either fits \"" + printable(options.subject) + "\".");
    return kFindings;
  }
  const CheckpointDifference& difference = told->difference;
  const ComparedPaths paths{options.checkpoint, options.against};
  if (options.json)
    print_answer(context, difference_to_json(difference, paths));
  else
    context.terminal.out(
        difference_to_text(difference, *told->a, *told->b, paths, style_of(context)));
  if (difference.verdict == EqualityVerdict::kSame) return kClean;
  return difference.verdict == EqualityVerdict::kDifferent ? kFindings : kUndecided;
}

}  // namespace shw::cli
