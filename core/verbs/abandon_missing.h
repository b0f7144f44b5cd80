// Repair of a checkpoint with missing or truncated data files when the user gives a fill (--fill):
// a plan of steps that keeps everything else.
#pragma once

#include <optional>
#include <string>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/verbs/verbs.h"

namespace shw::verbs {

// nullopt if no data is missing or no fill is given; findings then report the missing files. If a
// moment loses elements, those of the other moment are dropped too; non-tensor entries cannot be
// filled and are left out.
Result<std::optional<Plan>> plan_dropping_missing_data(const Opened& opened,
                                                       const std::string& fill, Progress* progress);

}  // namespace shw::verbs
