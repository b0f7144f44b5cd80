// The command line equivalent to an action, as shown in messages, reports and the
// desktop.
#pragma once

#include <string>
#include <string_view>

#include "core/model/checkpoint.h"
#include "core/verbs/options.h"

namespace shw {

// "shardwright check step_9000 --spec spec.json": shell-quoted, with all given options of the verb.
// Supports info, check, plan, repair, verify, undo, report and gui.
std::string command_line(std::string_view verb, const VerbOptions& verb_options);
// The same for `repair`, with a conversion where results of the format are not written.
std::string repair_command_line(const Checkpoint& checkpoint, const VerbOptions& verb_options);

}  // namespace shw
