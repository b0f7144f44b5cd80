// What several processes have met is said once, by the first of them.
#pragma once

#include "app/cli/verbs.h"
#include "core/cluster/last_words.h"
#include "core/cluster/mpi.h"

namespace shw::cli {

// All of a session come here at its end, each with what it met. A process that the first one does
// not hear speaks for itself.
void say_last_words(Context& context, MpiSession& session, const LastWords& own);

}  // namespace shw::cli
