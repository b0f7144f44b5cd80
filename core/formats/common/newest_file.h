// Chooses the newest of several files of one model by name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/model/finding.h"

namespace shw {

// The file called "last", "latest" or "final", or the one with the greatest number if the names are
// equal except for numbers. `paths` are in natural order. nullopt if the names do not tell.
std::optional<std::string> newest_by_name(const std::vector<std::string>& paths);

Finding newest_file_finding(const std::string& newest, std::vector<std::string> aside);

}  // namespace shw
