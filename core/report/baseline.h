// Baseline: findings of an earlier `check --json` that do not fail later runs.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/result.h"
#include "core/model/finding.h"
#include "core/rules/check.h"
#include "core/tensor/shape.h"

namespace shw {

// An accepted finding with everything that determines its severity.
struct AcceptedFinding {
  Severity severity = Severity::kInfo;
  Consequence consequence = Consequence::kNone;
  std::set<std::string> subjects;
  std::map<std::string, std::vector<std::int64_t>> counts;  // numbers and bools of its evidence
  std::map<std::string, std::vector<Box>> boxes;            // boxes of its evidence
  std::map<std::string, std::set<std::string>> texts;       // lists of texts in its evidence
};

struct Baseline {
  std::map<std::string, std::vector<AcceptedFinding>> accepted;  // by rule
  // Indices in `accepted` by "rule\nsubject", or "rule\n" for findings without subject.
  std::unordered_map<std::string, std::vector<std::size_t>> places;
  Depth depth = Depth::kData;   // depth of the check
  std::set<std::string> needs;  // what the check lacked to judge everything
};
// kUsage, naming the file, if the text is not an answer of `check --json`.
Result<Baseline> baseline_from_json(std::string_view text, const std::string& source);

// True if one accepted finding of the same rule covers all subjects, with at least the same
// severity, consequence and counts in its evidence, and contains every box and item. So more, or
// other, lost elements of the same tensor are not known. Counts of intact or read elements may
// grow.
bool is_known(const Baseline& baseline, const Finding& finding);
std::size_t count_known_findings(const Baseline& baseline, const std::vector<Finding>& findings);

// Findings of the baseline that the report no longer has, as "rule: subject". Empty if the check
// read less than the baseline's.
std::vector<std::string> fixed_since(const Baseline& baseline, const CheckReport& report);

}  // namespace shw
