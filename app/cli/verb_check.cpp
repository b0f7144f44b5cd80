#include "app/cli/verbs.h"
#include "core/report/report.h"
#include "core/verbs/check_context.h"

namespace shw::cli {
namespace {

std::optional<Severity> fails_from(const std::string& fail_on) {
  if (fail_on == "never") return std::nullopt;
  if (fail_on == "info") return Severity::kInfo;
  return fail_on == "error" ? Severity::kError : Severity::kWarning;
}

}  // namespace

int run_check(Context& context) {
  const Options& options = context.options;
  auto asked = verbs::read_asked(options.baseline, options.policy);
  if (!asked) return fail_with(context, asked.error());
  auto opened = open_all(context);
  if (!opened) return fail_with(context, opened.error());
  auto report = check_now(context, *opened);
  if (!report) return fail_with(context, report.error());
  auto judged = [&] {
    ProgressLine line(context.terminal, context.progress);
    return verbs::judge(*asked, *opened, report->depth == Depth::kData, &context.progress,
                        context.team);
  }();
  if (!judged) return fail_with(context, judged.error());
  const CheckContext beside = asked->context(options.checkpoint);
  if (options.json) {
    context.terminal.out_line(check_to_json(*report, beside));
  } else {
    context.terminal.out_line(check_to_text(*opened->checkpoint, *report, text_options(context)));
    context.terminal.out(context_to_text(*report, beside, style_of(context)));
  }
  // What is certain comes first: that something else could not be read does not take it back.
  if (verbs::fails(*report, *asked, fails_from(options.fail_on))) return kFindings;
  if (report->verdict == Verdict::kUndecided) return kUndecided;
  return verbs::is_open(*report, *asked) ? kUndecided : kClean;
}

}  // namespace shw::cli
