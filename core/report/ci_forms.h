// What CI systems read: SARIF 2.1.0, JUnit XML, and the annotations of GitHub's workflow log. Made
// from what `check` found, like every other form.
#pragma once

#include <span>
#include <string>

#include "core/model/checkpoint.h"
#include "core/report/baseline.h"
#include "core/report/listing.h"
#include "core/rules/check.h"
#include "core/rules/policy.h"

namespace shw {

// What a check was asked beside its findings.
struct CheckContext {
  std::string path;                // of the checkpoint, as the person typed it
  std::string command = {};        // that makes the answer again
  std::string baseline_file = {};  // empty: there is none
  const Baseline* baseline = nullptr;
  std::span<const PolicyAnswer> policies = {};
};

// None of them looks clean where the check could not decide, whatever the baseline knows.
//
// One result a finding, with its subjects as locations; a rule's title, text and remedy once. What
// the baseline knows is "unchanged", the rest "new". What could not be looked at is of the kind
// "open", and a warning of an execution that did not succeed.
std::string report_sarif(const Checkpoint& checkpoint, const CheckReport& report,
                         const CheckContext& context);
// A test case a rule that ran, one a policy: failed by a finding above info that is not known, an
// error where something could not be decided, skipped where it needs a deeper look.
std::string report_junit(const CheckReport& report, const CheckContext& context);
// "::error file=PATH,title=RULE::cause", a line a finding; what could not be looked at warns.
std::string report_github(const CheckReport& report, const CheckContext& context);

// The same forms of a run that ended in an error: the error is all that they hold, so that a form
// of an earlier run does not stand for this one.
std::string failed_sarif(const std::string& error, const CheckContext& context);
std::string failed_junit(const std::string& error, const CheckContext& context);
std::string failed_github(const std::string& error, const CheckContext& context);

// check_to_json() with "known" on findings, "baseline" and "policy" where they were asked.
std::string check_to_json(const CheckReport& report, const CheckContext& context);
// A line about the baseline and one a policy; nothing where nothing was asked.
std::string context_to_text(const CheckReport& report, const CheckContext& context,
                            const TextStyle& style);

}  // namespace shw
