// Reports errors of a multi-process run once, from rank 0.
#pragma once

#include "app/cli/verbs.h"
#include "core/cluster/mpi.h"
#include "core/cluster/rank_report.h"

namespace shw::cli {

// Collective, at the end of a session: each process passes its report. A process that rank 0 does
// not hear prints its own report.
void report_final_errors(Context& context, MpiSession& session, const RankReport& own);

}  // namespace shw::cli
