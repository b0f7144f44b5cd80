#include "core/base/words.h"
#include "core/report/ci_forms.h"

namespace shw {
namespace {

Ink ink_of(PolicyVerdict verdict) {
  if (verdict == PolicyVerdict::kMet) return Ink::kGreen;
  return verdict == PolicyVerdict::kBroken ? Ink::kRed : Ink::kGold;
}

std::string policy_line(const PolicyAnswer& policy, const TextStyle& style) {
  std::string line =
      inked(style, ink_of(policy.verdict),
            padded(std::string(name(policy.verdict)), std::string_view("undecided").size())) +
      "  require " + policy.require + ": " + printable(policy.why);
  if (!policy.subjects.empty()) line += " (" + printable(short_list_text(policy.subjects)) + ")";
  return line + "\n";
}

}  // namespace

std::string context_to_text(const CheckReport& report, const CheckContext& context,
                            const TextStyle& style) {
  std::string out;
  if (context.baseline != nullptr) {
    out += printable(context.baseline_file) + " knows " +
           human_count(count_known_findings(*context.baseline, report.findings)) + " of " +
           plural(report.findings.size(), "finding");
    std::vector<std::string> gone = fixed_since(*context.baseline, report);
    if (!gone.empty()) out += "; gone since: " + printable(short_list_text(gone));
    out += "\n";
  }
  for (const PolicyAnswer& policy : context.policies) out += policy_line(policy, style);
  return out;
}

}  // namespace shw
