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

// The files of each save where several steps of several files are mixed: "model_100.pt" and
// "optim_100_rank0.pt", "model_200.pt" and "optim_200_rank0.pt". Oldest first; files of one name
// but for the step are at one place in each. Empty if the names do not tell.
std::vector<std::vector<std::string>> saves_by_name(const std::vector<std::string>& paths);

Finding newest_file_finding(const std::vector<std::string>& opened, std::vector<std::string> aside);

}  // namespace shw
