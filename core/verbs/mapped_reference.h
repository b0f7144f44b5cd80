// check and diff for checkpoints of two programs, such as Megatron-core and Hugging Face. They are
// compared through a map (core/maps).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/compare/difference.h"
#include "core/maps/compare_mapped.h"
#include "core/rules/check.h"
#include "core/verbs/map_options.h"

namespace shw::verbs {

// The model's sizes from both checkpoints and the files next to them.
ModelFacts model_facts_of_both(const Checkpoint& a, const Checkpoint& b);

struct MappedVerdict {
  bool is_compared = false;  // false: `unjudged` has the reason
  bool is_same = false;      // all tensors were compared and are equal to the bit
  bool has_unread = false;   // some tensor could not be read
  std::size_t named = 0;     // subjects of findings that name the mistake
  std::size_t unnamed = 0;   // subjects in another order or shape, which other head counts give too
  std::vector<Finding> findings;
  std::vector<Unjudged> unjudged;
};
// Compares the checkpoint with a reference of another program; nullopt if both belong to one
// program or to no known one, and --map is not given. `program`: that of both, if the reference is
// a view in the layout of another one.
Result<std::optional<MappedVerdict>> compare_through_map(
    const std::shared_ptr<const Checkpoint>& checkpoint,
    const std::shared_ptr<const Checkpoint>& reference, const MapOptions& mapping,
    std::optional<Depth> depth, Progress* progress, const std::string& program = {});
// Adds findings to the report, before others of equal severity, with their effect on a load.
void add_findings(const Checkpoint& checkpoint, std::vector<Finding> findings, CheckReport& report);
// Adds the comparison to the report of a check without reference.
void add_mapped_verdict(const Checkpoint& checkpoint, MappedVerdict judged, CheckReport& report);

// Like compare_through_map(), for diff.
Result<std::optional<CheckpointDifference>> difference_through_map(
    const std::shared_ptr<const Checkpoint>& a, const std::shared_ptr<const Checkpoint>& b,
    const MapOptions& mapping, bool reads_values, Progress* progress);

}  // namespace shw::verbs
