// The rules, one a file, and the few helpers that they share. Only check.cpp and the rules include
// this.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/rules/check.h"

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
    kReplicaDiverge, kOtherModel, kMeshContradicted, kTilesExchanged, kFilledElements;

// The subjects that findings of `rule` name: what another rule need not say again.
std::unordered_set<std::string_view> explained_by(const std::vector<Finding>& findings,
                                                  std::string_view rule);

// Names that tensors will have and will have had, by findings that rename.
struct NewNames {
  std::unordered_set<std::string> given;  // without what wrappers add: bare_name()
  std::unordered_set<std::string> left;   // and not given to another
};
NewNames new_names(const Checkpoint& checkpoint, const std::vector<Finding>& findings);

// What chunks and items look like after a cause that was found is no news: overlaps, gaps and
// shapes of tensors that a cause names are only to know. Run once, after all rules.
void settle_symptoms(std::vector<Finding>& findings);

}  // namespace shw
