// Converts a conversion's result back and compares it with the source.
#pragma once

#include <string>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/base/team.h"
#include "core/repair/run/repair_result.h"
#include "core/verbs/map_options.h"
#include "core/verbs/verbs.h"

namespace shw::verbs {

// Reads every byte of both sides. `said` and `mapping` are the options of the conversion. An error
// if no map leads back or a size is unknown.
Result<RoundTripResult> check_round_trip(const Opened& source, const VerbOptions& said,
                                         const MapOptions& mapping, const std::string& output,
                                         Progress* progress = nullptr, Team* team = nullptr);

}  // namespace shw::verbs
