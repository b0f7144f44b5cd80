// `stats RUN --by-step`: norms and NaN of every step of a run, by module.
#pragma once

#include <string>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/report/run_report.h"

namespace shw::verbs {

// Reads every float element of every step. kUsage if the folder has no steps; kCancelled. The
// report mentions steps that cannot be opened.
Result<RunReport> run_statistics(const std::string& path, Progress* progress);

}  // namespace shw::verbs
