// Whether this process works together with others: where that was asked for, never because a
// launcher's variables are there.
#pragma once

#include <optional>

#include "app/cli/options.h"
#include "core/base/result.h"
#include "core/cluster/launch.h"

namespace shw::cli {

// Of --processes and its variable: this process among those that it joins.
Launch launch_to_join(const Options& options);
// The same of words that could not be parsed.
Launch launch_to_join(int argc, char** argv);
// What was asked for and makes no sense, or would let several processes write one folder: each of
// those that mpirun or srun begins with this program itself, where nobody asked for several.
std::optional<Error> refuse_processes(const Options& options, const Launch& joined);

}  // namespace shw::cli
