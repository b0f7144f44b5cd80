#include "core/rules/rules.h"

#include <algorithm>
#include <unordered_map>

#include "core/base/checked.h"
#include "core/facts/optimizer_states.h"
#include "core/rules/claims.h"

namespace shw {

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
      names.given.insert(bare_name(renamed->fqn));
      names.left.emplace(checkpoint.fqn(renamed->tensor));
    }
  }
  std::erase_if(names.left,
                [&](const std::string& name) { return names.given.contains(bare_name(name)); });
  return names;
}

void settle_symptoms(std::vector<Finding>& findings) {
  std::unordered_map<std::string_view, std::string_view> causes;  // subject -> rule
  for (const Finding& finding : findings) {
    bool cause = finding.severity == Severity::kError &&
                 (finding.rule == kUnevenStrided.id || finding.rule == kAxisDropped.id ||
                  finding.rule == kLocalSavedAsGlobal.id || finding.rule == kGluSplitLocal.id ||
                  finding.rule == kStridedRecordedPlain.id || finding.rule == kSharedStorage.id ||
                  (finding.rule == kTilesExchanged.id && finding.remedy));
    if (!cause) continue;
    for (const std::string& subject : finding.subjects) causes.emplace(subject, finding.rule);
  }
  if (causes.empty()) return;
  for (Finding& finding : findings) {
    bool symptom = finding.rule == kChunkOverlap.id || finding.rule == kCoverageGap.id ||
                   finding.rule == kChunkOutOfBounds.id || finding.rule == kPayloadShape.id ||
                   finding.rule == kWriterMosaic.id;
    // An item of another tensor may have its dtype.
    symptom = symptom || (finding.rule == kPayloadDtype.id && !finding.subjects.empty() &&
                          causes.contains(finding.subjects.front()) &&
                          causes.at(finding.subjects.front()) == kSharedStorage.id);
    if (!symptom || !std::all_of(finding.subjects.begin(), finding.subjects.end(),
                                 [&](const std::string& s) { return causes.contains(s); }))
      continue;
    finding.severity = Severity::kInfo;
    finding.evidence.emplace_back("explained by", std::string(causes.at(finding.subjects.front())));
  }
}

}  // namespace shw
