// Reports for CI systems: SARIF 2.1.0, JUnit XML, and annotations of GitHub's workflow log, made
// from the findings of `check`.
#pragma once

#include <span>
#include <string>

#include "core/model/checkpoint.h"
#include "core/report/baseline.h"
#include "core/report/listing.h"
#include "core/rules/check.h"
#include "core/rules/policy.h"

namespace shw {

// Options of a check besides its findings.
struct CheckContext {
  std::string path;                // of the checkpoint, as the user typed it
  std::string command = {};        // command that reproduces the answer
  std::string baseline_file = {};  // empty if there is none
  const Baseline* baseline = nullptr;
  std::span<const PolicyAnswer> policies = {};
  const Checkpoint* checkpoint = nullptr;  // for counts of tensors and files; may be null
};

// No form looks clean if the check is undecided, whatever the baseline contains.
//
// One result per finding, with its subjects as locations; title, text and remedy once per rule.
// Findings in the baseline are "unchanged", others "new". What was not checked has kind "open",
// with a warning, and the execution counts as unsuccessful.
std::string report_sarif(const Checkpoint& checkpoint, const CheckReport& report,
                         const CheckContext& context);
// One test case per rule that ran and per policy. It fails on findings above info that are not in
// the baseline, is an error if undecided, and is skipped if it needs a deeper check.
std::string report_junit(const CheckReport& report, const CheckContext& context);
// "::error file=PATH,title=RULE::cause", one line per finding; warnings for what was not checked.
std::string report_github(const CheckReport& report, const CheckContext& context);

// The same formats for a run that failed. They contain only the error, so that an older file is not
// taken for this run's.
std::string failed_sarif(const std::string& error, const CheckContext& context);
std::string failed_junit(const std::string& error, const CheckContext& context);
std::string failed_github(const std::string& error, const CheckContext& context);

// check_to_json() with "known" in findings, and "baseline" and "policy" if given.
std::string check_to_json(const CheckReport& report, const CheckContext& context);
// One line for the baseline and one per policy; empty if none are given.
std::string context_to_text(const CheckReport& report, const CheckContext& context,
                            const TextStyle& style);

}  // namespace shw
