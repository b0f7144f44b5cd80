// Verbs reshard, convert, and plans of steps: requests become steps, which are then executed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/exec/forecast.h"
#include "core/repair/run/outlook.h"
#include "core/transform/steps_json.h"
#include "core/verbs/verbs.h"

namespace shw {
class Store;
}

namespace shw::verbs {

// Cuts every tensor anew for the options' mesh and placements (a file). Formats with whole tensors
// are written as DCP, which has tiles.
Result<StepPlan> plan_reshard(const Opened& opened, const VerbOptions& verb_options);
// Writes the same tensors in the format of option `to`.
Result<StepPlan> plan_convert(const Opened& opened, const VerbOptions& verb_options);
// Reads a plan of steps; empty if the file is a repair plan. Relative paths in it are relative to
// the file.
Result<std::optional<StepPlan>> read_step_plan(const std::string& path);

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
// The plan with its preview as "explain", as printed by `plan --plan`.
std::string outlook_to_json(const StepPlan& plan, const StepOutlook& outlook);
// The same for a repair plan, with the reasons that prevent it, if any.
std::string outlook_to_json(const Checkpoint& checkpoint, const Plan& plan,
                            const Result<RepairOutlook>& outlook);
// `memory`: limit of the run.
Result<StepOutlook> look_ahead(const Opened& opened, const StepPlan& plan, std::uint64_t memory,
                               Progress* progress);

// "verb" in the requests of these runs.
inline constexpr const char* kStepsVerb = "steps";
Result<RepairResult> take(Store& store, const Opened& opened, const StepPlan& plan,
                          const ApplyOptions& options, Progress* progress);
// Only for local files.
Result<RepairResult> take(const Opened& opened, const StepPlan& plan, const ApplyOptions& options,
                          Progress* progress);

// Findings that should be repaired first, because they could no longer be recognised in new
// tiles.
Result<std::vector<Finding>> reasons_to_repair_first(const Opened& opened,
                                                     std::optional<Depth> depth, Progress* progress,
                                                     Team* team = nullptr);

}  // namespace shw::verbs
