#include "core/rules/rules.h"
#include "core/rules/names/name_rules.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "core/rules/names/spec_key.h"
#include "core/rules/reference/content_rules.h"

namespace shw {
namespace {

const Rule* const kInOrder[] = {
    // Findings made when the checkpoint was opened, and missing or unreadable data.
    &kUnsafePickle, &kPathEscape, &kMissingFile, &kShortFile, &kDataNewer, &kFileHash,
    &kTileUnlisted, &kStorageDangling, &kFilledElements, &kSharedStorage, &kIndexMisplaced,
    &kUnownedBytes,
    // Causes that explain later findings.
    &kPlacementAxisMoved, &kGluSplitLocal, &kLocalSavedAsGlobal, &kAxisDropped, &kWriterMosaic,
    &kUnevenStrided, &kStridedRecordedPlain, &kTopologyLocked, &kFusedPerRank, &kUnevenShards,
    &kFlatShard,
    // Rules that need another checkpoint.
    &kTransposed, &kBlocksPermuted, &kTilesExchanged, &kForeignFile, &kDiffersFromReference,
    &kVocabularyPadding, &kTiedWeights, &kLayersRenumbered, &kExpertsExchanged, &kContentMoved,
    &kAxisRepeated, &kNormsShifted, &kConvertedWrongly,
    // Names and companion tensors.
    &kRenamedTensors, &kWrappedNames, &kAdapterContradicts, &kEmptyTensors, &kSideFile,
    &kUnreadableJson, &kZeroWeights, &kConstantWeights, &kFreshLayers, &kQuantisedPairs,
    // Chunks, items and spec.
    &kChunkRank, &kChunkOutOfBounds, &kChunkOverlap, &kCoverageGap, &kBadRecord, &kPayloadShape,
    &kPayloadDtype, &kKeysetHole, &kMissingKey, &kAxisGrown, &kShapeMismatch, &kDtypeMismatch,
    &kUnexpectedKey, &kOtherModel, &kConfigShape, &kConfigCount, &kConfigAnnounces, &kConfigNames,
    &kTokenIds, &kGgufKeys, &kRouterRows, &kDraftHeads, &kSiblingAxes, &kNotLookedAt, &kHalfPair,
    &kPairAsymmetry, &kExpertSuffix, &kExtraState, &kPlannerKeys, &kRankHole, &kLeftoverMetadata,
    &kLeftoverData, &kManyChunks, &kDuplicateContent, &kOptimizerGroups, &kMomentBound,
    &kMomentCorrelation, &kMasterCast, &kReplicaDiverge, &kValueStatistics, &kOwnEntries,
    &kPortability, &kMeshContradicted, &kSpecKey, &kMixedSaves, &kOtherForm, &kHowRead};

}  // namespace

std::span<const Rule> all_rules() {
  static const std::vector<Rule> kRules = [] {
    std::vector<Rule> rules;
    for (const Rule* rule : kInOrder) rules.push_back(*rule);
    return rules;
  }();
  return kRules;
}

const Rule* find_rule(std::string_view id) {
  // Called for every finding, also by views.
  static const std::unordered_map<std::string_view, const Rule*> kById = [] {
    std::unordered_map<std::string_view, const Rule*> rules;
    for (const Rule& rule : all_rules()) rules.emplace(rule.id, &rule);
    return rules;
  }();
  auto found = kById.find(id);
  return found == kById.end() ? nullptr : found->second;
}

Status run_rule(const Rule& rule, const Facts& facts, std::vector<Finding>& findings) {
  if (rule.run_shared != nullptr) return rule.run_shared(facts, findings);
  if (rule.run != nullptr) rule.run(facts, findings);
  return {};
}

const Rule& rule_of(const Finding& finding) {
  static const Rule kNobody;
  const Rule* rule = find_rule(finding.rule);
  return rule == nullptr ? kNobody : *rule;
}

std::vector<const Finding*> unopened(const Checkpoint& checkpoint) {
  std::vector<const Finding*> found;
  for (const Finding& finding : checkpoint.opening_findings()) {
    const Rule& rule = rule_of(finding);
    // A warning damages no bytes: reading has already corrected the record, for example dropped a
    // duplicate key.
    bool damaged = rule.damages_bytes && finding.severity == Severity::kError;
    if (damaged || rule.leaves_undecided) found.push_back(&finding);
  }
  return found;
}

std::vector<std::string> unreadable_subjects(const Checkpoint& checkpoint) {
  std::vector<std::string> subjects;
  for (const Finding* finding : unopened(checkpoint))
    subjects.insert(subjects.end(), finding->subjects.begin(), finding->subjects.end());
  std::sort(subjects.begin(), subjects.end());
  subjects.erase(std::unique(subjects.begin(), subjects.end()), subjects.end());
  return subjects;
}

}  // namespace shw
