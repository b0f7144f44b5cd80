// config.json says the dtype of the weights. Where a result has another one, a config.json that
// comes along would be wrong about it.
#pragma once

#include "core/exec/folder_run.h"

namespace shw {

// Where most floating elements have another dtype than in the source, and config.json is among
// run.copied and says the source's: it is written with the new one instead.
void say_dtype_in_config(const Checkpoint& source, FolderRun& run);

}  // namespace shw
