// The result of a checkpoint of another machine would be next to it without a place of its own.
#pragma once

#include <string>

#include "core/base/result.h"

namespace shw {

// kUsage for a path of another machine.
Status check_is_here(const std::string& out);

}  // namespace shw
