// The codec of torch.save archives of one contiguous tensor, of which a chunk has a part or another
// shape: the chunk's view counts in the archive's elements.
#pragma once

#include "core/model/format.h"

namespace shw {

extern const Codec kTorchZipViewCodec;

}  // namespace shw
