// check and diff of two checkpoints that two programs name differently: Megatron-core's beside one
// of Hugging Face. They are compared through a map (core/maps).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/compare/difference.h"
#include "core/maps/compare_mapped.h"
#include "core/rules/check.h"
#include "core/verbs/map_options.h"

namespace shw::verbs {

// What both checkpoints and files beside them say of the model's sizes.
ModelFacts facts_of_pair(const Checkpoint& a, const Checkpoint& b);

struct JudgedThroughMap {
  bool is_compared = false;  // else `unjudged` says why not
  bool is_same = false;      // every tensor was compared, and is equal to the bit
  bool has_unread = false;   // a tensor of either could not be read
  std::vector<Finding> findings;
  std::vector<Unjudged> unjudged;
};
// The checkpoint beside a reference with names of another program; nothing where both have names of
// one program, or of none that is known, and --map names no map.
Result<std::optional<JudgedThroughMap>> judge_through_map(
    const std::shared_ptr<const Checkpoint>& checkpoint,
    const std::shared_ptr<const Checkpoint>& reference, const MapOptions& mapping,
    std::optional<Depth> depth, Progress* progress);
// Findings before those of a report that are not worse, with what becomes of a run.
void add_findings(const Checkpoint& checkpoint, std::vector<Finding> findings, CheckReport& report);
// Adds it to what a check without the reference reported.
void add_judged(const Checkpoint& checkpoint, JudgedThroughMap judged, CheckReport& report);

// The same for diff.
Result<std::optional<CheckpointDifference>> difference_through_map(
    const std::shared_ptr<const Checkpoint>& a, const std::shared_ptr<const Checkpoint>& b,
    const MapOptions& mapping, bool reads_values, Progress* progress);

}  // namespace shw::verbs
