// Commands that do not depend on a checkpoint: explaining an error message, saving a report, the
// demo. See commands.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/session/command.h"

namespace shw {

std::optional<Command> parse_explain_error(std::string_view rest);
std::string print_explain_error(const Command& command);
Result<Change> run_explain_error(const Snapshot& before, const Command& command,
                                 Progress* progress);

std::optional<Command> parse_report(std::string_view rest);
std::string print_report(const Command& command);
std::optional<Command> parse_hash(std::string_view rest);
std::string print_hash(const Command& command);
Result<Change> run_hash(const Snapshot& before, const Command& command, Progress* progress);
std::optional<Command> parse_save_view(std::string_view rest);
std::string print_save_view(const Command& command);
Result<Change> run_save_view(const Snapshot& before, const Command& command, Progress* progress);
Result<Change> run_report(const Snapshot& before, const Command& command, Progress* progress);

std::optional<Command> parse_demo(std::string_view rest);
std::string print_demo(const Command& command);
// Creates the demo and opens it with its spec.
Result<Change> run_demo(const Snapshot& before, const Command& command, Progress* progress);

std::optional<Command> parse_place(std::string_view rest);
std::string print_place(const Command& command);
Result<Change> run_inspect_new_file(const Snapshot& before, const Command& command,
                                    Progress* progress);

}  // namespace shw
