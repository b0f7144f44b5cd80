// Sentences about an unfinished repair.
#pragma once

#include <string>

#include "core/verbs/stopped_runs.h"

namespace shw {

// Steps and fill of the plan in its journal.
std::string plan_text_of(const verbs::StoppedRun& run);
// What Resume and Discard would do, asked before they do it.
std::string resume_question(const verbs::StoppedRun& run);
std::string discard_question(const verbs::StoppedRun& run);

}  // namespace shw
