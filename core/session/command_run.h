// The functions that execute commands; see commands.h.
#pragma once

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/session/command.h"

namespace shw {

Result<Change> run_open(const Snapshot& before, const Command& command, Progress* progress);
// Keeps the selected tensor. For files that a repair in place has written.
Result<Change> open_and_check_again(const Snapshot& before, std::optional<Depth> depth,
                                    Progress* progress);
Result<Change> run_check(const Snapshot& before, const Command& command, Progress* progress);
Result<Change> run_mesh(const Snapshot& before, const Command& command, Progress* progress);
Result<Change> run_plan(const Snapshot& before, const Command& command, Progress* progress);
Result<Change> run_repair(const Snapshot& before, const Command& command, Progress* progress);
Result<Change> run_verify(const Snapshot& before, const Command& command, Progress* progress);
Result<Change> run_undo(const Snapshot& before, const Command& command, Progress* progress);
Result<Change> select_tensor(const Snapshot& before, const Command& command, Progress* progress);
Result<Change> select_chunk(const Snapshot& before, const Command& command, Progress* progress);
Result<Change> select_finding(const Snapshot& before, const Command& command, Progress* progress);

// Unfinished repairs of the open checkpoint. `output`: also searched for; may be empty.
std::shared_ptr<const verbs::StoppedRuns> search_stopped_runs(const Snapshot& snapshot,
                                                              const std::string& output = {});
Result<Change> run_resume(const Snapshot& before, const Command& command, Progress* progress);
Result<Change> run_roll_back(const Snapshot& before, const Command& command, Progress* progress);
Result<Change> run_commit(const Snapshot& before, const Command& command, Progress* progress);

// Handlers of comparisons; defined in compare_run.cpp.
Result<Change> run_compare(const Snapshot& before, const Command& command, Progress* progress);
Result<Change> run_learn(const Snapshot& before, const Command& command, Progress* progress);
Result<Change> select_difference(const Snapshot& before, const Command& command,
                                 Progress* progress);

// Handlers for commands that edit the plan; defined in plan_run.cpp.
tl::unexpected<Error> no_plan_error();
// Suffix of the default output name: "-repaired" for a repair, the target for a conversion.
std::string suffix_of(const Snapshot& snapshot);
void set_plan_edits(Snapshot& snapshot, std::shared_ptr<const PlanEdits> edits);
Result<Change> run_step(const Snapshot& before, const Command& command, Progress* progress);
Result<Change> run_plan_undo(const Snapshot& before, const Command& command, Progress* progress);
Result<Change> run_plan_redo(const Snapshot& before, const Command& command, Progress* progress);
Result<Change> run_edit_plan(const Snapshot& before, const Command& command, Progress* progress);
Result<Change> run_save_plan(const Snapshot& before, const Command& command, Progress* progress);
Result<Change> run_load_plan(const Snapshot& before, const Command& command, Progress* progress);
Result<Change> run_dry_run(const Snapshot& before, const Command& command, Progress* progress);
Result<Change> run_write_as(const Snapshot& before, const Command& command, Progress* progress);
Result<Change> run_target(const Snapshot& before, const Command& command, Progress* progress);

}  // namespace shw
