// Plans for reshard, convert and --then: options become steps.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/exec/forecast.h"
#include "core/repair/run/estimate.h"
#include "core/verbs/verbs.h"

namespace shw {
class Store;
}

namespace shw::verbs {

// Splits every tensor again for options.mesh and options.placements (a file). Formats that store
// tensors whole are written as DCP, which has tiles. `notes`: patterns that match no tensor.
Result<Plan> plan_reshard(const Opened& opened, const VerbOptions& options,
                          std::vector<std::string>* notes = nullptr);
// Converts the tensors to the format options.to.
Result<Plan> plan_convert(const Opened& opened, const VerbOptions& options);
// Appends the steps of --then to the plan, in order: "reshard:MESH", "convert:FORMAT", "cast:DTYPE"
// (every floating-point tensor), "drop:PATTERN", or a step as JSON. Returns notes for the user.
Result<std::vector<std::string>> add_steps(const Opened& opened, const VerbOptions& options,
                                           Plan& plan, Progress* progress = nullptr);
// An empty plan for this checkpoint.
Plan empty_plan_for(const Opened& opened);

// Preview of a run before anything is written: steps as text, bytes, jobs. Refuses everything that
// the run would refuse.
struct StepsEstimate {
  std::vector<std::string> steps;
  std::string format;
  std::uint64_t tensors = 0, tiles_kept = 0, tiles_made = 0;
  std::map<std::string, std::uint64_t> jobs;   // by kind: "rows", "strided", "cast", ...
  std::vector<std::string> out_of_range = {};  // one text per cast whose range is too small
  std::uint64_t bytes_read = 0, bytes_written = 0;
  // Entries for which other ranks saved other values in their own indices; those values are not
  // copied.
  std::vector<std::string> of_other_ranks = {};
  std::string program_hash;
  Forecast forecast;
};
// JSON of the plan with the preview under "explain", as `plan --plan` prints it.
std::string estimate_to_json(const Checkpoint& checkpoint, const Plan& plan,
                             const StepsEstimate& outlook);
// JSON of a repair's plan with its preview, or with the reason why it cannot be applied.
std::string estimate_to_json(const Checkpoint& checkpoint, const Plan& plan,
                             const Result<RepairEstimate>& outlook);
// `memory`: limit for the run, in bytes.
Result<StepsEstimate> estimate_steps(const Opened& opened, const Plan& plan, std::uint64_t memory,
                                     Progress* progress);

// Findings that must be repaired before resharding or converting: in new tiles they could no longer
// be recognised.
Result<std::vector<Finding>> findings_to_repair_first(const Opened& opened,
                                                      std::optional<Depth> depth,
                                                      Progress* progress, Team* team = nullptr);
// Findings above info of a source checkpoint, and its unread files; these and errors first.
Result<std::vector<Finding>> findings_of_input(const std::string& path, std::optional<Depth> depth,
                                               Progress* progress);
// The findings in plan.undecided that must be repaired before resharding or converting.
std::vector<Finding> unrepaired_reasons_in(const Plan& plan);

}  // namespace shw::verbs
