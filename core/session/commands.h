// The table of commands, one row each.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/progress.h"
#include "core/session/command.h"
#include "core/session/snapshot.h"

namespace shw {

// The thread that executes a command.
enum class Lane : std::uint8_t {
  kNow,         // the caller, at once: changes of the selection
  kJob,         // the thread of long jobs, in order
  kQuick,       // like kJob, but shown only if it takes noticeably long
  kList,        // the list thread: only the latest filter and sort order matter
  kConcurrent,  // a thread of its own, concurrent with the long job: only reads
  kLook,        // the thread for file contents: only the latest of each kind matters
};

struct CommandRow {
  std::string_view verb;   // first word of the text form
  std::string_view form;   // syntax: "check [metadata|headers|data]"
  std::string_view title;  // "Checking", for the job bar; empty for instant commands
  Lane lane;
  // Parses the text after the verb; nullopt if invalid.
  std::optional<Command> (*parse)(std::string_view rest);
  std::string (*print)(const Command& command);
  // A pure function from a snapshot to its change. Null for cancel, filter, sort, go, pause and
  // continue, which the session handles. A Lane::kLook command fails only if cancelled; other
  // errors are part of its result.
  Result<Change> (*run)(const Snapshot& before, const Command& command, Progress* progress);
};

// In the order of Command's alternatives.
std::span<const CommandRow> command_table();
const CommandRow& row_of(const Command& command);

// One line of a replay script: "open PATH [spec PATH]", "check data", "repair out DIR", ...
std::string to_text(const Command& command);
Result<Command> parse_command(std::string_view line);

// Commands after a check with findings: make the plan, and list the affected tensors. Empty if
// nothing is to be done.
std::vector<Command> follow_up(const Snapshot& snapshot);

}  // namespace shw
