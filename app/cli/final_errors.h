// What several processes have met is said once, by the first of them.
#pragma once

#include "app/cli/verbs.h"
#include "core/cluster/mpi.h"
#include "core/cluster/rank_report.h"

namespace shw::cli {

// All of a session come here at its end, each with what it met. A process that the first one does
// not hear speaks for itself.
void report_final_errors(Context& context, MpiSession& session, const RankReport& own);

}  // namespace shw::cli
