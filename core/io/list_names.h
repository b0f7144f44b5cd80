// Lists a folder; all other code uses this function. An error in the middle of the listing fails
// the call, so that an incomplete list is never taken for the whole.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"

namespace shw {

// Names in an open folder, which stays open, without "." and "..". `path` is used in errors.
Result<std::vector<std::string>> names_in(int folder, const std::string& path);
Result<std::vector<std::string>> names_in(const std::string& path);

}  // namespace shw
