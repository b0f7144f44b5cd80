// A transport between ranks with one GPU each, over NCCL.
#pragma once

#include <memory>

#include "core/cluster/transport.h"
#include "gpu/nccl_options.h"
#include "gpu/nccl_stage.h"

namespace shw {

// Collective. `control` connects the same ranks by MPI or threads and carries what NCCL cannot. It
// must outlive the result and must not be used otherwise. A rank that fails here has informed the
// others.
Result<std::unique_ptr<Transport>> open_nccl(const NcclLibrary& nccl,
                                             std::unique_ptr<NcclStagingBuffer> stage,
                                             Transport& control, const NcclOptions& options);

}  // namespace shw
