// All that a person can do, one table row each.
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

// Who carries it out.
enum class Lane : std::uint8_t {
  kNow,         // the caller, at once: a change of the selection
  kJob,         // the thread of long jobs, in order
  kQuick,       // the same, told only where it takes longer than a person notices
  kList,        // the thread of the list: only the last filter and the last order matter
  kConcurrent,  // a thread of its own, beside the long job: it only reads
  kLook,        // the thread that looks into files: of each kind only the last one matters
};

struct CommandRow {
  std::string_view verb;   // the first word of its text form
  std::string_view form;   // "check [metadata|headers|data]": what a person may type
  std::string_view title;  // "Checking": what the job bar says; empty where it takes no time
  Lane lane;
  // What stands after the verb; nothing where it cannot be read.
  std::optional<Command> (*parse)(std::string_view rest);
  std::string (*print)(const Command& command);
  // Pure: from what is there to what becomes of it. Null for cancel, filter, sort, go, pause and
  // continue, which are the session's own. One of Lane::kLook fails only when it is stopped: what
  // is wrong is what it saw.
  Result<Change> (*run)(const Snapshot& before, const Command& command, Progress* progress);
};

// In the order of Command's alternatives.
std::span<const CommandRow> command_table();
const CommandRow& row_of(const Command& command);

// One line of a replay script: "open PATH [spec PATH]", "check data", "repair out DIR", ...
std::string to_text(const Command& command);
Result<Command> parse_command(std::string_view line);

// After a check that found something: the plan that the next action reviews, and the tensors that
// are concerned. Empty where nothing is to be done.
std::vector<Command> follow_up(const Snapshot& snapshot);

}  // namespace shw
