// Baseline and policies of a check.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/report/ci_forms.h"
#include "core/verbs/verbs.h"

namespace shw::verbs {

struct CheckRequest {
  std::optional<Baseline> baseline;
  std::string baseline_file;
  std::vector<std::string> required;   // of kPolicies
  std::vector<PolicyAnswer> policies;  // results

  CheckContext context(const std::string& path, const std::string& command = {}) const {
    return {path, command, baseline_file, baseline ? &*baseline : nullptr, policies};
  }
};

// Reads the files first, so that mistakes in them are found before large checkpoints are opened.
// Empty names: not used.
Result<CheckRequest> read_check_request(const std::string& baseline_file,
                                        const std::string& policy_file);
// Evaluates the policies. `data`: may read tensor data.
Status judge(CheckRequest& asked, const Opened& opened, bool data, Progress* progress = nullptr,
             Team* team = nullptr);

// Parses {"require": ["coverage", "finite"]} or lines "require: coverage, finite" with # comments.
// kUsage for unknown policies.
Result<std::vector<std::string>> policies_from_text(std::string_view text,
                                                    const std::string& source);

// True if the run must fail: a new finding at or above `from`, or a broken
// policy.
bool must_fail_check(const CheckReport& report, const CheckRequest& asked,
                     std::optional<Severity> from);
// True if a policy is undecided or something was not examined: baseline and severity threshold do
// not change that.
bool is_open(const CheckReport& report, const CheckRequest& asked);

}  // namespace shw::verbs
