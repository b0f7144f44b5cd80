// The plan that a result was made by, as its certificate keeps it: with the source at hand it says
// again where every element was to go.
#pragma once

#include <string>

#include "core/base/result.h"

namespace shw {

// As it is while a person may read it, packed above 64 KiB: a plan has a line for every tile that
// it moves.
std::string keep_plan(std::string plan);
// The JSON again. kDamaged where it cannot be had.
Result<std::string> kept_plan(const std::string& kept);

}  // namespace shw
