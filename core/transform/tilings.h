// Splits a tensor into tiles: by a mesh and placements, or not at all.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/transform/target_state.h"

namespace shw {

// Tiles for `tiling`. A tile that several ranks have is written by the first of them, as in torch's
// DCP; a rank without rows writes none.
Result<std::vector<TargetChunk>> make_tiles(const TargetState& all, const NewTiling& tiling,
                                            const TargetTensor& tensor);

// kUnsupported for Partial, which cannot be saved.
Status check_no_partial(const std::vector<Placement>& placements, std::string_view fqn);

// The current tensor of an entry, including its tiles.
Result<TargetTensor> tensor_of(const TargetState& all, const TargetEntry& entry);

// Placements by tensor name: the first matching shell pattern counts.
struct PlacementRules {
  std::vector<std::pair<std::string, std::vector<Placement>>> rules = {};
};
// Reads {"*.weight": ["Shard(0)", "Replicate"], ...} in the order of the file, with one placement
// per mesh axis. kUsage with the wrong pattern.
Result<PlacementRules> placement_rules_from_json(std::string_view json, const std::string& source,
                                                 const Mesh& mesh);
// Default without a matching rule: Shard(0) on the first axis and Replicate on the others; a tensor
// without dims is replicated.
std::vector<Placement> placements_by_rules(const PlacementRules& rules, std::string_view fqn,
                                           std::size_t ndim, const Mesh& mesh);

}  // namespace shw
