// Small files that are written in addition to tensors.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/bytes.h"

namespace shw {

using SmallFiles = std::vector<std::pair<std::string, Bytes>>;  // path and bytes

}  // namespace shw
