// Formats of torch.distributed.checkpoint: with one .metadata, with one per rank, and Megatron's
// torch_dist, which adds a metadata.json.
#pragma once

#include "core/formats/dcp/dcp_names.h"
#include "core/model/format.h"

namespace shw {

extern const Format kDcpFormat, kDcpRankLocalFormat, kMegatronFormat;

}  // namespace shw
