// Turns options that ask for a computed checkpoint into a path (core/verbs/computed_path.h).
#pragma once

#include "app/cli/options.h"
#include "core/base/result.h"

namespace shw::cli {

// True for merge, average, delta, apply and extract: they combine CHECKPOINT and other inputs.
bool combines_inputs(const Options& options);
// Sets options.checkpoint to that path. kUsage if the path of an input cannot be part of it.
Status name_computed_checkpoint(Options& options);

}  // namespace shw::cli
