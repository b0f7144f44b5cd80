// The way back from what a conversion wrote: its tensors under the names and in the layout of the
// source, beside the source's own.
#pragma once

#include <string>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/base/team.h"
#include "core/repair/run/repair_result.h"
#include "core/verbs/map_options.h"
#include "core/verbs/verbs.h"

namespace shw::verbs {

// Reads every byte of both sides. `said`, `mapping`: of the conversion. Errors: the way back cannot
// be gone, because no map leads there or a size that it needs is said nowhere.
Result<WayBack> way_back(const Opened& source, const VerbOptions& said, const MapOptions& mapping,
                         const std::string& output, Progress* progress = nullptr,
                         Team* team = nullptr);

}  // namespace shw::verbs
