// Converts a conversion's result back and compares it with the source.
#pragma once

#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/base/team.h"
#include "core/repair/run/repair_result.h"
#include "core/transform/steps.h"
#include "core/verbs/map_options.h"
#include "core/verbs/verbs.h"

namespace shw::verbs {

// Reads every byte of both sides. Optimizer states are followed as weights are; those that the
// target program has no place for are counted apart from lost ones. `said`, `mapping` and `steps`
// are the conversion's. Without a map, tensors are found by the names that the steps gave them, and
// casts are taken back. An error if no map leads back or a size is unknown.
Result<RoundTripResult> check_round_trip(const Opened& source, const VerbOptions& said,
                                         const MapOptions& mapping, const std::vector<Step>& steps,
                                         const std::string& output, Progress* progress = nullptr,
                                         Team* team = nullptr);

}  // namespace shw::verbs
