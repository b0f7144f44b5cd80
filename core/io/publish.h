// A finished directory gets its name in one step; a half-made one goes away: a part of
// posix_store.cpp.
#pragma once

#include <string>

#include "core/base/result.h"

namespace shw {

// rename(2) of a finished directory to its final name (RENAME_NOREPLACE), then fsync of the parent.
Status publish_directory(const std::string& temporary, const std::string& final_path);
// Removes it with all below; refuses anything whose name does not hold `marker`.
Status discard_directory(const std::string& path, const std::string& marker);

}  // namespace shw
