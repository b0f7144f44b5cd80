#include "app/cli/verbs.h"
#include "app/cli/words.h"
#include "core/report/report.h"

namespace shw::cli {
namespace {

int verdict_code(const CheckReport& report, const std::string& fail_on) {
  if (report.verdict == Verdict::kUndecided) return kUndecided;
  if (fail_on == "never") return kClean;
  Severity least = Severity::kWarning;
  if (fail_on == "info") least = Severity::kInfo;
  if (fail_on == "error") least = Severity::kError;
  for (const Finding& finding : report.findings) {
    if (finding.severity >= least) return kFindings;
  }
  return kClean;
}

}  // namespace

int run_check(Context& context) {
  auto options = check_options(context);
  if (!options) return fail_with(context, options.error());
  auto checkpoint = open(context);
  if (!checkpoint) return fail_with(context, checkpoint.error());
  auto report = check_now(context, **checkpoint, *options);
  if (!report) return fail_with(context, report.error());
  if (context.options.json) {
    context.terminal.out_line(check_to_json(*report));
  } else {
    context.terminal.out_line(check_to_text(**checkpoint, *report, text_options(context)));
  }
  return verdict_code(*report, context.options.fail_on);
}

}  // namespace shw::cli
