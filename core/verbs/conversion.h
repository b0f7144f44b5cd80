// Which plan a conversion has, by the word of --to.
#pragma once

#include "core/verbs/convert_plan.h"
#include "core/verbs/map_options.h"

namespace shw::verbs {

// --to a program, or --map: through a map. --to optimizer: Trainer's optimizer. Else a format.
Result<ConvertPlan> plan_conversion(const Opened& opened, const VerbOptions& said,
                                    const MapOptions& mapping, Progress* progress);

}  // namespace shw::verbs
