#include <algorithm>

#include "app/cli/verbs.h"
#include "core/report/report.h"
#include "core/verbs/check_context.h"
#include "core/verbs/ignored_rules.h"
#include "core/verbs/run/newest_step.h"

namespace shw::cli {
namespace {

int check_single_checkpoint(Context& context) {
  const Options& options = context.options;
  auto ignored = rules_to_ignore(options);
  if (!ignored) return fail_with(context, ignored.error());
  auto asked = verbs::read_check_request(options.baseline, options.policy);
  if (!asked) return fail_with(context, asked.error());
  auto opened = open_all(context);
  if (!opened) return fail_with(context, opened.error());
  auto report = check_opened(context, *opened);
  if (!report) return fail_with(context, report.error());
  verbs::ignore_findings(*report, *ignored);
  auto judged = [&] {
    ProgressLine line(context.terminal, context.progress);
    return verbs::judge(*asked, *opened, report->depth == Depth::kData, &context.progress,
                        context.team);
  }();
  if (!judged) return fail_with(context, judged.error());
  CheckContext beside = asked->context(options.checkpoint);
  beside.checkpoint = opened->checkpoint.get();
  if (options.json) {
    print_answer(context, check_to_json(*report, beside));
  } else {
    context.terminal.out_line(check_to_text(*opened->checkpoint, *report, text_options(context)));
    context.terminal.out(context_to_text(*report, beside, style_of(context)));
  }
  return exit_code_of_check(*report, *asked, options.fail_on);
}

// Checks one of several checkpoints; resolves its newest step if requested.
int check_one_of_several(Context& context, const std::string& path) {
  Options options = context.options;
  options.checkpoint = path;
  Context one{options,      context.terminal,   context.progress,
              context.team, context.local_rank, context.workers};
  one.stopped_by = context.stopped_by;
  auto steps = verbs::resolve_newest_steps(options, &context.progress, context.team);
  one.answers = context.answers;
  if (!steps) return fail_with(one, steps.error());
  if (!options.json) context.terminal.out("\n" + printable(options.checkpoint) + "\n");
  const int code = check_single_checkpoint(one);
  if (one.deferred_error) context.deferred_error = one.deferred_error;
  return code;
}

}  // namespace

namespace {

// One JSON list: the answers in the order of the checkpoints.
std::string list_of(const std::vector<std::string>& answers) {
  std::string text = "[";
  for (const std::string& answer : answers) text += (text.size() == 1 ? "\n" : ",\n") + answer;
  return text + "\n]";
}

// Checks several checkpoints. The exit code is 1 if any has findings, otherwise the greatest.
int check_all(Context& context) {
  const Options& options = context.options;
  int code = check_single_checkpoint(context);
  bool has_findings = code == kFindings;
  for (const std::string& path : options.inputs) {
    const int next = check_one_of_several(context, path);
    has_findings = has_findings || next == kFindings;
    code = std::max(code, next);
  }
  return has_findings ? kFindings : code;
}

}  // namespace

int run_check(Context& context) {
  const Options& options = context.options;
  if (options.inputs.empty()) return check_single_checkpoint(context);
  if (!options.json) {
    context.terminal.out(printable(options.checkpoint) + "\n");
    return check_all(context);
  }
  std::vector<std::string> answers;
  context.answers = &answers;
  const int code = check_all(context);
  context.answers = nullptr;
  if (context.team == nullptr || !answers.empty()) context.terminal.out_line(list_of(answers));
  return code;
}

}  // namespace shw::cli
