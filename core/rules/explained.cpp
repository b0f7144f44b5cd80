#include "core/rules/explained.h"

#include <algorithm>
#include <unordered_map>

#include "core/model/state_names.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

bool is_cause(const Finding& finding) {
  ExplainedSymptoms cause_of = rule_of(finding).cause_of;
  if (finding.severity != Severity::kError || cause_of == ExplainedSymptoms::kNothing) return false;
  return cause_of != ExplainedSymptoms::kTilesIfRepaired || finding.remedy.has_value();
}

using Causes = std::unordered_map<std::string_view, const Finding*>;  // by subject

bool is_symptom(const Finding& finding, const Causes& causes) {
  SymptomIn in = rule_of(finding).symptom_in;
  if (in == SymptomIn::kTiles) return true;
  // An item of another tensor may have the right dtype.
  if (in != SymptomIn::kItems || finding.subjects.empty()) return false;
  auto cause = causes.find(finding.subjects.front());
  return cause != causes.end() &&
         rule_of(*cause->second).cause_of == ExplainedSymptoms::kTilesAndItems;
}

}  // namespace

std::unordered_set<std::string_view> explained_by(const std::vector<Finding>& findings,
                                                  std::string_view rule) {
  std::unordered_set<std::string_view> subjects;
  for (const Finding& finding : findings) {
    if (finding.rule != rule) continue;
    for (const std::string& subject : finding.subjects) subjects.insert(subject);
  }
  return subjects;
}

NewNames new_names(const Checkpoint& checkpoint, const std::vector<Finding>& findings) {
  NewNames names;
  for (const Finding& finding : findings) {
    for (const Diagnosis& diagnosis : finding.diagnoses) {
      const auto* renamed = std::get_if<Renamed>(&diagnosis);
      if (renamed == nullptr) continue;
      names.given.insert(unwrapped_name(renamed->fqn));
      names.left.emplace(checkpoint.fqn(renamed->tensor));
    }
  }
  std::erase_if(names.left, [&](const std::string& name) {
    return names.given.contains(unwrapped_name(name));
  });
  return names;
}

void demote_symptoms(std::vector<Finding>& findings) {
  Causes causes;
  for (const Finding& finding : findings) {
    if (!is_cause(finding)) continue;
    for (const std::string& subject : finding.subjects) causes.emplace(subject, &finding);
  }
  if (causes.empty()) return;
  for (Finding& finding : findings) {
    if (!is_symptom(finding, causes) ||
        !std::all_of(finding.subjects.begin(), finding.subjects.end(),
                     [&](const std::string& s) { return causes.contains(s); }))
      continue;
    finding.severity = Severity::kInfo;
    finding.evidence.emplace_back("explained_by", causes.at(finding.subjects.front())->rule);
  }
}

}  // namespace shw
