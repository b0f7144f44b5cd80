// Checks that a result is written to this machine, also if its checkpoint is remote.
#pragma once

#include <string>

#include "core/base/result.h"

namespace shw {

// kUsage for a path of another machine.
Status check_is_local(const std::string& out);

}  // namespace shw
