// The command line equivalent to an action, as shown in messages, reports and the
// desktop.
#pragma once

#include <string>
#include <string_view>

#include "core/verbs/options.h"

namespace shw {

// "shardwright check step_9000 --spec spec.json": shell-quoted, with all given options of the verb.
// Supports info, check, plan, repair, verify, undo, report and gui.
std::string command_line(std::string_view verb, const VerbOptions& verb_options);

}  // namespace shw
