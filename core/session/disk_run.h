// Commands about what lies on disk: the steps of a run, and files that someone else changed.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/session/command.h"

namespace shw {

std::optional<Command> parse_run(std::string_view rest);
std::string print_run(const Command& command);
// First call: the names. Further calls: one step each.
Result<Change> run_steps(const Snapshot& before, const Command& command, Progress* progress);
// Opens a folder of steps: nothing is checked but its steps are shown.
Change show_run(const Snapshot& before, const VerbOptions& options);

// Counts one step per call. Cancellation is not an error: what was counted stays.
Result<Change> run_run_numbers(const Snapshot& before, const Command& command, Progress* progress);

Result<Change> run_disk(const Snapshot& before, const Command& command, Progress* progress);

}  // namespace shw
