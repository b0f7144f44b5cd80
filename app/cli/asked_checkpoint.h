// What the options ask to be computed of the checkpoint that was named, as a path of it
// (core/verbs/asked_path.h).
#pragma once

#include "app/cli/options.h"
#include "core/base/result.h"

namespace shw::cli {

// merge, average, delta, apply and extract: a checkpoint made of CHECKPOINT and the other inputs.
bool combines_inputs(const Options& options);
// Puts that path into options.checkpoint. kUsage where an input cannot stand in such a path.
Status ask_for_computed(Options& options);

}  // namespace shw::cli
