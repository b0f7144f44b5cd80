// Where a verb may leave the file that it makes.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/verbs/verbs.h"

namespace shw::verbs {

// Refuses (kUsage) a place inside of what was opened, or under whatever name a file of it. Of one
// file that was opened alone the folder around it is not the checkpoint.
Status check_output_place(const Opened& opened, const VerbOptions& options, const std::string& out);

// The same where nothing could be opened, by the names alone.
Status check_output_apart(const std::string& checkpoint, const std::string& out);

}  // namespace shw::verbs
