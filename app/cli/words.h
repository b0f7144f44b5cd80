// Commands as a person would type them: what messages and reports suggest.
#pragma once

#include <string>

#include "app/cli/options.h"

namespace shw::cli {

std::string check_command(const Options& options);   // shardwright check step_9000 --spec spec.json
std::string repair_command(const Options& options);  // shardwright repair ...

}  // namespace shw::cli
