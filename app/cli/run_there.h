// What reads every byte of a checkpoint behind ssh, or changes it, runs on that machine where
// shardwright is installed there: its answer travels, the bytes do not.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "app/cli/verbs.h"

namespace shw::cli {

// The exit code of the run over there; nothing where the verb is to run here. `words`: what was
// typed behind the program's name.
std::optional<int> run_there(Context& context, std::span<const std::string> words);

}  // namespace shw::cli
