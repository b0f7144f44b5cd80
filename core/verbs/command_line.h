// The command that says at a terminal what was done here: what messages, reports and the desktop
// suggest.
#pragma once

#include <string>
#include <string_view>

#include "core/verbs/options.h"

namespace shw {

// "shardwright check step_9000 --spec spec.json": quoted for a shell, with every option that the
// verb takes and that was given. Knows info, check, plan, repair, verify, undo, report and gui.
std::string command_line(std::string_view verb, const VerbOptions& verb_options);

}  // namespace shw
