// What a check is asked beside its findings: what was known before, and what is required.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/report/ci_forms.h"
#include "core/verbs/verbs.h"

namespace shw::verbs {

struct CheckAsked {
  std::optional<Baseline> baseline;
  std::string baseline_file;
  std::vector<std::string> required;   // of kPolicies
  std::vector<PolicyAnswer> policies;  // once judged

  CheckContext context(const std::string& path, const std::string& command = {}) const {
    return {path, command, baseline_file, baseline ? &*baseline : nullptr, policies};
  }
};

// What stands in the files: read first, so that a mistake in one is known before terabytes are
// opened. Empty names: not asked.
Result<CheckAsked> read_asked(const std::string& baseline_file, const std::string& policy_file);
// Judges what is required. `data`: bytes may be read.
Status judge(CheckAsked& asked, const Opened& opened, bool data, Progress* progress = nullptr,
             Team* team = nullptr);

// {"require": ["coverage", "finite"]}, or lines of "require: coverage, finite" with # for remarks.
// kUsage with the word that is no policy.
Result<std::vector<std::string>> policies_from_text(std::string_view text,
                                                    const std::string& source);

// Something fails the run: a finding of that severity or above that is not known, or a policy that
// is broken.
bool fails(const CheckReport& report, const CheckAsked& asked, std::optional<Severity> from);
// Something that was asked could not be answered, or not looked at: a baseline that knows of it, or
// a severity that passes it over, decides nothing.
bool is_open(const CheckReport& report, const CheckAsked& asked);

}  // namespace shw::verbs
