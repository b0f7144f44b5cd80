// torch.distributed.checkpoint and its relatives: one .metadata, one a rank, and Megatron's
// torch_dist, which is DCP with a metadata.json beside it.
#pragma once

#include "core/formats/dcp/dcp_names.h"
#include "core/model/format.h"

namespace shw {

extern const Format kDcpFormat, kDcpRankLocalFormat, kMegatronFormat;

}  // namespace shw
