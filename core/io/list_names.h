// The one place that lists a folder. An error in the middle is an error: a part of the names is
// never taken for all of them.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"

namespace shw {

// Of an open folder, which stays open; without "." and "..". `path` is what errors call it.
Result<std::vector<std::string>> names_in(int folder, const std::string& path);
Result<std::vector<std::string>> names_in(const std::string& path);

}  // namespace shw
