// Workflow commands for GitHub's log, one per line: ::error file=PATH,title=TITLE::MESSAGE. In
// messages %, CR and LF are written %25, %0D and %0A; in properties : and , are escaped as well.
#include <algorithm>

#include "core/base/words.h"
#include "core/report/ci_forms.h"
#include "core/report/text_words.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

std::string escape_annotation(std::string_view text, bool is_property) {
  std::string out;
  for (char c : text) {
    if (c == '%')
      out += "%25";
    else if (c == '\r')
      out += "%0D";
    else if (c == '\n')
      out += "%0A";
    else if (is_property && c == ':')
      out += "%3A";
    else if (is_property && c == ',')
      out += "%2C";
    else
      out += c;
  }
  return out;
}

std::string annotation(std::string_view command, const std::string& path, const std::string& title,
                       const std::string& message) {
  return "::" + std::string(command) + " file=" + escape_annotation(printable(path), true) +
         ",title=" + escape_annotation(printable(title), true) +
         "::" + escape_annotation(printable(message), false) + "\n";
}

std::string_view command_of(const Finding& finding, const CheckContext& context) {
  if (rule_of(finding).leaves_undecided) return "warning";  // even if a baseline has it
  bool known = context.baseline != nullptr && is_known(*context.baseline, finding);
  if (known || finding.severity == Severity::kInfo) return "notice";
  return finding.severity == Severity::kError ? "error" : "warning";
}

std::string bracketed_subjects(const std::vector<std::string>& subjects) {
  return subjects.empty() ? "" : " (" + short_list_text(subjects) + ")";
}

}  // namespace

std::string report_github(const CheckReport& report, const CheckContext& context) {
  std::string out;
  for (const Finding& finding : report.findings)
    out += annotation(command_of(finding, context), context.path, finding.rule,
                      finding.cause + bracketed_subjects(finding.subjects));
  for (const PolicyAnswer& policy : context.policies) {
    if (policy.verdict == PolicyVerdict::kMet) continue;
    bool broken = policy.verdict == PolicyVerdict::kBroken;
    out += annotation(broken ? "error" : "warning", context.path, "require " + policy.require,
                      policy.why + bracketed_subjects(policy.subjects));
  }
  return out;
}

std::string failed_github(const std::string& error, const CheckContext& context) {
  std::string line = error;
  std::replace(line.begin(), line.end(), '\n', ' ');
  return annotation("error", context.path, "shardwright", line);
}

}  // namespace shw
