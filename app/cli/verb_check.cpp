#include "app/cli/verbs.h"
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
  auto opened = open_all(context);
  if (!opened) return fail_with(context, opened.error());
  auto report = check_now(context, *opened);
  if (!report) return fail_with(context, report.error());
  if (context.options.json) {
    context.terminal.out_line(check_to_json(*report));
  } else {
    context.terminal.out_line(check_to_text(*opened->checkpoint, *report, text_options(context)));
  }
  return verdict_code(*report, context.options.fail_on);
}

}  // namespace shw::cli
