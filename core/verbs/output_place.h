// Checks where a verb may write its output file.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/verbs/verbs.h"

namespace shw::verbs {

// Refuses (kUsage) places inside the opened checkpoint and its files under any name. For a
// checkpoint of one file the surrounding folder is allowed.
Status check_output_place(const Opened& opened, const VerbOptions& options, const std::string& out);

// Like check_output_place(), but by names only, for when nothing could be opened.
Status check_output_apart(const std::string& checkpoint, const std::string& out);

}  // namespace shw::verbs
