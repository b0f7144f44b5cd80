// What was known before: findings of a former `check --json` that need not fail a run again.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/model/finding.h"

namespace shw {

struct Baseline {
  // Rule, subject (empty where a finding has none), and the gravest severity that it had.
  std::map<std::pair<std::string, std::string>, Severity> known;
};
// kUsage with the file where the text is no answer of `check --json`.
Result<Baseline> baseline_from_json(std::string_view text, const std::string& source);

// The same rule said it of each of its subjects, and no less gravely.
bool is_known(const Baseline& baseline, const Finding& finding);
// What the baseline has and nothing says any more, as "rule: subject".
std::vector<std::string> gone_since(const Baseline& baseline, const std::vector<Finding>& findings);

}  // namespace shw
