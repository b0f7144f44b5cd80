// Corrects the dtype in a copied config.json if the weights of the result have another one.
#pragma once

#include "core/exec/folder_run.h"

namespace shw {

// If most floating elements get another dtype, and run.copied has a config.json with the source's
// dtype, that file is written with the new dtype instead of copied.
void update_config_dtype(const Checkpoint& source, FolderRun& run);

}  // namespace shw
