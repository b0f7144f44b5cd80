#include "core/rules/consequence.h"

#include <algorithm>

#include "core/model/evidence.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// A loader compares the saved shape with the correct one first, and stops.
bool changes_shape(const Diagnosis& diagnosis, const Checkpoint& checkpoint) {
  return std::visit(
      [&](const auto& kind) {
        if constexpr (requires { kind.expected; })
          return !std::ranges::equal(kind.expected, checkpoint.shape(kind.tensor));
        else
          return false;
      },
      diagnosis);
}

bool has_element_loss(const Finding& finding) {
  if (rule_of(finding).outcome == RunOutcome::kLosesElements) return true;
  // Elements dropped by a lossless remedy (padding rows) had no content.
  if (finding.remedy) return !finding.remedy->lossless;
  return std::any_of(finding.diagnoses.begin(), finding.diagnoses.end(),
                     [](const Diagnosis& d) { return std::holds_alternative<PartlyLost>(d); });
}

// True if the evidence has a saved shape and a different expected shape. A transpose that is only
// suspected has both, so it counts.
bool names_two_shapes(const Finding& finding) {
  const auto* saved = find_evidence<Extents>(finding, "saved");
  const auto* expected = find_evidence<Extents>(finding, "expected");
  return saved != nullptr && expected != nullptr && *saved != *expected;
}

// A warning of a rule whose errors stop a load.
bool may_stop(const Finding& finding) {
  if (finding.consequence != Consequence::kHazard) return false;
  const RunOutcome outcome = rule_of(finding).outcome;
  return outcome == RunOutcome::kLoadFails ||
         (outcome == RunOutcome::kLoadFailsByShape && names_two_shapes(finding));
}

}  // namespace

std::string_view name(Consequence consequence) {
  switch (consequence) {
    case Consequence::kNone:
      break;
    case Consequence::kHazard:
      return "hazard";
    case Consequence::kWillNotLoad:
      return "will-not-load";
    case Consequence::kSilentlyWrong:
      return "silently-wrong";
    case Consequence::kDataLost:
      return "data-lost";
  }
  return "none";
}

Consequence consequence_of(const Finding& finding, const Checkpoint& checkpoint) {
  RunOutcome outcome = rule_of(finding).outcome;
  if (finding.severity == Severity::kInfo || outcome == RunOutcome::kNone)
    return Consequence::kNone;
  if (outcome == RunOutcome::kIsFilled) return Consequence::kDataLost;
  if (outcome == RunOutcome::kRunsForeignCode || finding.severity == Severity::kWarning)
    return Consequence::kHazard;
  if (has_element_loss(finding)) return Consequence::kDataLost;
  // Findings without a repair, and rules of outcome kLoadFails: the load fails whatever the repair
  // changes.
  if (finding.diagnoses.empty() || outcome == RunOutcome::kLoadFails) {
    bool stops = outcome == RunOutcome::kLoadFails ||
                 (outcome == RunOutcome::kLoadFailsByShape && names_two_shapes(finding));
    return stops ? Consequence::kWillNotLoad : Consequence::kSilentlyWrong;
  }
  bool refused =
      std::any_of(finding.diagnoses.begin(), finding.diagnoses.end(),
                  [&](const Diagnosis& diagnosis) { return changes_shape(diagnosis, checkpoint); });
  return refused ? Consequence::kWillNotLoad : Consequence::kSilentlyWrong;
}

Consequence worst_consequence(const std::vector<Finding>& findings) {
  Consequence worst = Consequence::kNone;
  for (const Finding& finding : findings) worst = std::max(worst, finding.consequence);
  return worst;
}

std::string title_of(const Finding& finding) {
  return may_stop(finding) ? "May not load" : title_of(finding.consequence);
}

std::string title_of(const std::vector<Finding>& findings) {
  const Consequence worst = worst_consequence(findings);
  const bool stops = std::ranges::any_of(findings, [](const Finding& finding) {
    return finding.consequence == Consequence::kWillNotLoad;
  });
  const bool may = std::ranges::any_of(findings, may_stop);
  if (worst == Consequence::kSilentlyWrong && (stops || may))
    return stops ? "Will not load, and is wrong" : "May not load, and is wrong";
  return worst == Consequence::kHazard && may ? "May not load" : title_of(worst);
}

std::string title_of(Consequence consequence) {
  switch (consequence) {
    case Consequence::kNone:
      break;
    case Consequence::kHazard:
      return "Loads, but is not right";
    case Consequence::kWillNotLoad:
      return "Will not load";
    case Consequence::kSilentlyWrong:
      return "Loads, silently wrong";
    case Consequence::kDataLost:
      return "Elements are lost";
  }
  return "Something does not match";
}

}  // namespace shw
