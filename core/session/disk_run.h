// Commands about files on disk: the steps of a run, and changes by other processes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/session/command.h"
#include "core/verbs/run/run_steps.h"

namespace shw {

std::optional<Command> parse_run(std::string_view rest);
std::string print_run(const Command& command);
// The first call lists names; each further call examines one step.
Result<Change> run_steps(const Snapshot& before, const Command& command, Progress* progress);
// Opens a folder of steps without checking it; the steps are shown.
Change show_run(const VerbOptions& options, std::shared_ptr<const verbs::RunSteps> run);
// The steps of a folder that is opened. Keeps rows of the run before whose files have not changed.
std::shared_ptr<const verbs::RunSteps> list_opened_run(const Snapshot& before,
                                                       const std::string& folder);

// Reads one step per call. Cancellation is not an error: results so far stay.
Result<Change> run_run_numbers(const Snapshot& before, const Command& command, Progress* progress);

Result<Change> run_disk_check(const Snapshot& before, const Command& command, Progress* progress);

}  // namespace shw
