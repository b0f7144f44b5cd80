// Decides if this process works together with others: only if the user asked for it, never just
// because a launcher's variables are set.
#pragma once

#include <optional>

#include "app/cli/options.h"
#include "core/base/result.h"
#include "core/cluster/launch.h"

namespace shw::cli {

// This process among those that --processes or its variable make it join.
Launch launch_to_join(const Options& options);
// Like launch_to_join() above, for a command line that could not be parsed.
Launch launch_to_join(int argc, char** argv);
// Refuses options that make no sense, and processes that mpirun or srun started directly without
// --processes: they would all write one folder.
std::optional<Error> check_process_options(const Options& options, const Launch& joined);

}  // namespace shw::cli
