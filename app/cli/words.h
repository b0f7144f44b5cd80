// Commands as a person would type them: what messages and reports suggest.
#pragma once

#include <string>

#include "app/cli/options.h"

namespace shw::cli {

// The word as a shell takes it: quoted where it holds more than letters, digits and ./_-=,:@%+
std::string shell_word(const std::string& word);
std::string check_command(const Options& options);   // shardwright check step_9000 --spec spec.json
std::string repair_command(const Options& options);  // shardwright repair ...

}  // namespace shw::cli
