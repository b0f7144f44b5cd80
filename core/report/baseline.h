// What was known before: findings of a former `check --json` that need not fail a run again.
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

// A finding that was accepted, with all that tells how grave it was.
struct AcceptedFinding {
  Severity severity = Severity::kInfo;
  Consequence consequence = Consequence::kNone;
  std::set<std::string> subjects;
  std::map<std::string, std::vector<std::int64_t>> counts;  // of its evidence: numbers and bools
  std::map<std::string, std::vector<Box>> boxes;            // of its evidence
  std::map<std::string, std::set<std::string>> texts;       // of its evidence: lists of texts
};

struct Baseline {
  std::map<std::string, std::vector<AcceptedFinding>> accepted;  // by rule
  // Places in `accepted` of a rule, by "rule\nsubject"; "rule\n" of those without a subject.
  std::unordered_map<std::string, std::vector<std::size_t>> places;
  Depth depth = Depth::kData;   // how deep was looked
  std::set<std::string> needs;  // what would have decided what it did not judge
};
// kUsage with the file where the text is no answer of `check --json`.
Result<Baseline> baseline_from_json(std::string_view text, const std::string& source);

// One accepted finding of the same rule is about all of its subjects, is no less grave, has no
// milder consequence, counts no less in its evidence, and names there every box and every item of
// this one: the same tensor with more elements lost is not known, nor with other elements lost.
// What only counts what is well, or was looked at, may be more than it was.
bool is_known(const Baseline& baseline, const Finding& finding);
std::size_t known_count(const Baseline& baseline, const std::vector<Finding>& findings);

// What the baseline has and nothing says any more, as "rule: subject". Nothing where the report
// looked at less: nobody knows then.
std::vector<std::string> fixed_since(const Baseline& baseline, const CheckReport& report);

}  // namespace shw
