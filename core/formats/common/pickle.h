// Pickles, read without running anything. Protocols 0 to 5, all opcodes except out-of-band buffers.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/formats/common/pickle_tree.h"

namespace shw {

// `file` and `base` say where the bytes lie, for errors and for offsets. kDamaged: cut off, or no
// pickle; kUnsupported: beyond the limits. Bytes behind STOP are the caller's business (end()).
Result<PickleTree> decode_pickle(BytesView bytes, const std::string& file, std::uint64_t base = 0,
                                 const PickleLimits& limits = {});

}  // namespace shw
