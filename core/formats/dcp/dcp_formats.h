// Formats of torch.distributed.checkpoint: with one .metadata, with one per rank, and Megatron's
// torch_dist, which adds a metadata.json.
#pragma once

#include "core/formats/dcp/dcp_names.h"
#include "core/model/format.h"

namespace shw {

extern const Format kDcpFormat, kDcpRankLocalFormat, kMegatronFormat;
// Read only, because a record of .metadata is of all that a tensor subclass wraps: writing the
// index from what is shown would lose the class (dcp_subclasses.h).
extern const Format kDcpWrappedFormat;
// Read only, because a record of .metadata is of a whole dict (pickled_dicts.h).
extern const Format kDcpPickledFormat;

}  // namespace shw
