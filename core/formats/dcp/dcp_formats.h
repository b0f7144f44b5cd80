// Formats of torch.distributed.checkpoint: with one .metadata, with one per rank, and Megatron's
// torch_dist, which adds a metadata.json.
#pragma once

#include "core/formats/dcp/dcp_names.h"
#include "core/model/format.h"

namespace shw {

extern const Format kDcpFormat, kDcpRankLocalFormat, kMegatronFormat;
// Read only: a record of .metadata covers all tensors that a subclass wraps, so writing the index
// from the single tensors would lose the class (dcp_subclasses.h).
extern const Format kDcpWrappedFormat;
// Read only: a record of .metadata covers a whole dict (pickled_dicts.h).
extern const Format kDcpPickledFormat;
// Read only: an item of .metadata covers several chunks (flattened_states.h).
extern const Format kMegatronFlattenedFormat;

}  // namespace shw
