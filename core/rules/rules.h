// The table of the rules: one a file, and one row a rule.
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
    kValueStatistics, kMasterCast, kDuplicateContent, kMomentCorrelation, kOptimizerGroups,
    kReplicaDiverge, kOtherModel, kMeshContradicted, kTilesExchanged, kFilledElements,
    kSharedStorage, kIndexMisplaced, kFileHash, kOwnEntries, kForeignFile, kTileUnlisted,
    kFlatShard, kExpertsExchanged, kConfigShape, kConfigCount, kExpertSuffix;
extern const Rule kUnownedBytes;

// In the order in which they run: causes first.
std::span<const Rule> all_rules();
const Rule* find_rule(std::string_view id);

// What the rule looks for, found; an error only of rules that read together (Rule::run_shared).
Status run_rule(const Rule& rule, const Facts& facts, std::vector<Finding>& findings);

// The row of the rule that found it; one without roles where there is no such rule.
const Rule& rule_of(const Finding& finding);

// Of opening: what could not be read, so that nobody knows what else lies there.
std::vector<const Finding*> unopened(const Checkpoint& checkpoint);
// The files and records that these name, each once.
std::vector<std::string> unopened_subjects(const Checkpoint& checkpoint);

}  // namespace shw
