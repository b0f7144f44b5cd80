// Workers with a GPU each, whose bytes travel by NCCL.
#pragma once

#include <memory>

#include "core/cluster/transport.h"
#include "gpu/nccl_options.h"
#include "gpu/nccl_stage.h"

namespace shw {

// All workers ask for it at once. `control` joins the same workers, by MPI or as threads: over it
// goes what NCCL cannot say. It outlives what is opened and carries nothing else meanwhile. A
// worker that fails here has told the others.
Result<std::unique_ptr<Transport>> open_nccl(const NcclLibrary& nccl,
                                             std::unique_ptr<NcclStage> stage, Transport& control,
                                             const NcclOptions& options);

}  // namespace shw
