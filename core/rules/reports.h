// The rules of the five reports (spec/failures.md 2 to 6) that need meshes, roles or optimizer
// states: one file each. placement-axis-moved (S1) stands in a file of its own as well.
#pragma once

#include <set>
#include <vector>

#include "core/rules/check.h"

namespace shw {

void find_glu_split_local(const RuleInput& input, std::vector<Finding>& findings);
void find_local_saved_as_global(const RuleInput& input, std::vector<Finding>& findings);
void find_axis_dropped(const RuleInput& input, std::vector<Finding>& findings);
void find_writer_mosaic(const RuleInput& input, std::vector<Finding>& findings);
void find_topology_locked(const RuleInput& input, std::vector<Finding>& findings);
void find_strided_recorded_plain(const RuleInput& input, std::vector<Finding>& findings);
void find_uneven_strided(const RuleInput& input, std::vector<Finding>& findings);
void find_fused_per_rank(const RuleInput& input, std::vector<Finding>& findings);

// Tensors that a cause already explains: a later rule leaves them alone.
std::set<TensorId> split_locally(const RuleInput& input);    // S2
std::set<TensorId> saved_as_global(const RuleInput& input);  // S3

}  // namespace shw
