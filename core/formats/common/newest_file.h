// Of several files that hold one model, the newest by its name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/model/finding.h"

namespace shw {

// "last", "latest" or "final", or the greatest number of names equal up to numbers. `paths` are in
// natural order; nullopt where the names do not say that they are steps or copies.
std::optional<std::string> newest_by_name(const std::vector<std::string>& paths);

Finding told_newest(const std::string& newest, std::vector<std::string> aside);

}  // namespace shw
