// The table of rules, one row per rule and one rule per file.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/checkpoint.h"
#include "core/rules/rule.h"

namespace shw {

extern const Rule kUnsafePickle, kPathEscape, kMissingFile, kShortFile, kBadRecord,
    kStorageDangling, kChunkRank, kChunkOutOfBounds, kChunkOverlap, kCoverageGap, kPayloadShape,
    kPayloadDtype, kPortability, kPlacementAxisMoved, kMissingKey, kUnexpectedKey, kShapeMismatch,
    kDtypeMismatch, kNotLookedAt, kGluSplitLocal, kLocalSavedAsGlobal, kAxisDropped, kWriterMosaic,
    kTopologyLocked, kStridedRecordedPlain, kUnevenStrided, kFusedPerRank, kTransposed,
    kBlocksPermuted, kDiffersFromReference, kVocabularyPadding, kTiedWeights, kLayersRenumbered,
    kLeftoverMetadata, kLeftoverData, kRankHole, kDataNewer, kPlannerKeys, kHalfPair, kManyChunks,
    kAxisGrown, kPairAsymmetry, kExtraState, kKeysetHole, kUnevenShards, kMomentBound,
    kValueStatistics, kFreshLayers, kMasterCast, kDuplicateContent, kMomentCorrelation,
    kOptimizerGroups, kReplicaDiverge, kOtherModel, kMeshContradicted, kTilesExchanged,
    kFilledElements, kSharedStorage, kIndexMisplaced, kFileHash, kOwnEntries, kForeignFile,
    kTileUnlisted, kFlatShard, kExpertsExchanged, kConfigShape, kConfigCount, kExpertSuffix;
extern const Rule kUnownedBytes, kHowRead, kMixedSaves, kOtherForm;

// In execution order: causes first.
std::span<const Rule> all_rules();
const Rule* find_rule(std::string_view id);

// Runs one rule; errors occur only in rules with run_shared.
Status run_rule(const Rule& rule, const Facts& facts, std::vector<Finding>& findings);

// The row of the finding's rule; an empty row if the rule is unknown.
const Rule& rule_of(const Finding& finding);

// Opening findings about unreadable files or records, which may hide tensors.
std::vector<const Finding*> unopened(const Checkpoint& checkpoint);
// Subjects of the findings of unopened(), each once.
std::vector<std::string> unreadable_subjects(const Checkpoint& checkpoint);

}  // namespace shw
