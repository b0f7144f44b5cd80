// reshard, convert, and --then: what a person asks for becomes steps of a plan.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/exec/forecast.h"
#include "core/repair/run/outlook.h"
#include "core/verbs/verbs.h"

namespace shw {
class Store;
}

namespace shw::verbs {

// Every tensor cut anew for options.mesh, as options.placements (a file) has it. What holds whole
// tensors is written as DCP, which has tiles.
Result<Plan> plan_reshard(const Opened& opened, const VerbOptions& options);
// The same tensors in the format options.to.
Result<Plan> plan_convert(const Opened& opened, const VerbOptions& options);
// What --then asks for, one after the other: "reshard:MESH", "convert:FORMAT", "cast:DTYPE" (every
// floating-point tensor), "drop:PATTERN", or a step as JSON. Added behind what the plan does
// already. What comes back are remarks for a person.
Result<std::vector<std::string>> add_steps(const Opened& opened, const VerbOptions& options,
                                           Plan& plan, Progress* progress = nullptr);
// One for this checkpoint that does nothing yet.
Plan plan_for(const Opened& opened);

// Preview of a run before anything is written: steps in words, bytes, jobs. Every refusal happens
// here.
struct StepOutlook {
  std::vector<std::string> steps;
  std::string format;
  std::uint64_t tensors = 0, tiles_kept = 0, tiles_made = 0;
  std::map<std::string, std::uint64_t> jobs;   // by kind: "rows", "strided", "cast", ...
  std::vector<std::string> out_of_range = {};  // results for numbers out of a cast's range
  std::uint64_t bytes_read = 0, bytes_written = 0;
  // Entries that other ranks saved differently in indices of their own; they are not copied.
  std::vector<std::string> of_other_ranks = {};
  std::string program_hash;
  Forecast forecast;
};
// The plan with what it comes to under "explain", as `plan --plan` prints it.
std::string outlook_to_json(const Checkpoint& checkpoint, const Plan& plan,
                            const StepOutlook& outlook);
// The same of a repair, beside its plan. What keeps it from being carried out stands there too.
std::string outlook_to_json(const Checkpoint& checkpoint, const Plan& plan,
                            const Result<RepairOutlook>& outlook);
// `memory`: what the run may take.
Result<StepOutlook> look_ahead(const Opened& opened, const Plan& plan, std::uint64_t memory,
                               Progress* progress);

// Findings that speak against carrying a checkpoint over as it is: in new tiles nobody could tell
// them any more.
Result<std::vector<Finding>> reasons_to_repair_first(const Opened& opened,
                                                     std::optional<Depth> depth, Progress* progress,
                                                     Team* team = nullptr);
// Findings above info of a checkpoint that another one is made of, errors first.
Result<std::vector<Finding>> findings_of_input(const std::string& path, std::optional<Depth> depth,
                                               Progress* progress);
// The same of what a plan leaves as it was.
std::vector<Finding> reasons_in(const Plan& plan);

}  // namespace shw::verbs
