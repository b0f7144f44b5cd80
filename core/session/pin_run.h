// Pinned places of the open checkpoint, with notes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/session/command.h"

namespace shw {

std::optional<Command> parse_pin(std::string_view rest);
std::string print_pin(const Command& command);
// Pins the selected tensor and tile; a place that is pinned already gets the new note.
Result<Change> run_pin(const Snapshot& before, const Command& command, Progress* progress);

std::optional<Command> parse_unpin(std::string_view rest);
std::string print_unpin(const Command& command);
Result<Change> run_unpin(const Snapshot& before, const Command& command, Progress* progress);

}  // namespace shw
