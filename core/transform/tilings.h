// How a tensor is cut into tiles: by a mesh and placements, or not at all.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/transform/target_state.h"

namespace shw {

// The tiles that `tiling` asks for. A tile that several ranks hold is written by the first of them,
// as torch's DCP does; a rank without rows writes none.
Result<std::vector<TargetChunk>> tiles_of(const TargetState& all, const NewTiling& tiling,
                                          const TargetTensor& tensor);

// kUnsupported where one of them is Partial, which cannot be saved.
Status check_no_partial(const std::vector<Placement>& placements, std::string_view fqn);

// An entry as it stands now, its tiles included.
Result<TargetTensor> tensor_of(const TargetState& all, const TargetEntry& entry);

// Which placements a tensor gets, by its name: the first shell pattern that matches counts.
struct PlacementRules {
  std::vector<std::pair<std::string, std::vector<Placement>>> rules = {};
};
// {"*.weight": ["Shard(0)", "Replicate"], ...}, in the order of the file. One placement a mesh
// axis. kUsage with the pattern that is wrong.
Result<PlacementRules> placement_rules_from_json(std::string_view json, const std::string& source,
                                                 const Mesh& mesh);
// Shard(0) on the first axis and Replicate on the others where no rule says anything; a tensor
// without dims is replicated.
std::vector<Placement> placements_of(const PlacementRules& rules, std::string_view fqn,
                                     std::size_t ndim, const Mesh& mesh);

}  // namespace shw
