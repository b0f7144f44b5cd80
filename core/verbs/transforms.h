// reshard, convert, and plans of steps: what a person asks for becomes steps, which are then taken.
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

// Every tensor cut anew for said.mesh, as said.placements (a file) has it. What holds whole tensors
// is written as DCP, which has tiles.
Result<StepPlan> plan_reshard(const Opened& opened, const VerbOptions& verb_options);
// The same tensors in the format said.to.
Result<StepPlan> plan_convert(const Opened& opened, const VerbOptions& verb_options);
// A file that may hold a plan of steps; nothing where it is one that a repair is carried out by.
// Relative paths in it are those from where it lies.
Result<std::optional<StepPlan>> read_step_plan(const std::string& path);

// What it comes to, before anything is written: the steps in words, bytes, jobs. Everything that
// can be refused is refused here.
struct StepOutlook {
  std::vector<std::string> steps;
  std::string format;
  std::uint64_t tensors = 0, tiles_kept = 0, tiles_made = 0;
  std::map<std::string, std::uint64_t> jobs;   // by what they do: "rows", "strided", "cast", ...
  std::vector<std::string> out_of_range = {};  // what becomes of numbers that casts cannot say
  std::uint64_t bytes_read = 0, bytes_written = 0;
  // Of which other ranks, with indices of their own, saved something else: that stays behind.
  std::vector<std::string> of_other_ranks = {};
  std::string program_hash;
  Forecast forecast;
};
// The plan with what it comes to under "explain", as `plan --plan` prints it.
std::string outlook_to_json(const StepPlan& plan, const StepOutlook& outlook);
// The same of a repair, beside its plan. What keeps it from being carried out stands there too.
std::string outlook_to_json(const Checkpoint& checkpoint, const Plan& plan,
                            const Result<RepairOutlook>& outlook);
// `memory`: what the run may take.
Result<StepOutlook> look_ahead(const Opened& opened, const StepPlan& plan, std::uint64_t memory,
                               Progress* progress);

// What the requests of these runs call themselves.
inline constexpr const char* kStepsVerb = "steps";
Result<RepairResult> take(Store& store, const Opened& opened, const StepPlan& plan,
                          const ApplyOptions& options, Progress* progress);
// On this machine's own files.
Result<RepairResult> take(const Opened& opened, const StepPlan& plan, const ApplyOptions& options,
                          Progress* progress);

// Findings that speak against carrying a checkpoint over as it is: in new tiles nobody could tell
// them any more.
Result<std::vector<Finding>> reasons_to_repair_first(const Opened& opened,
                                                     std::optional<Depth> depth, Progress* progress,
                                                     Team* team = nullptr);

}  // namespace shw::verbs
