// Decodes pickles without executing anything: protocols 0 to 5, all opcodes except out-of-band
// buffers.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/formats/pickle/pickle_tree.h"

namespace shw {

// `file` and `base`: position of the bytes, for errors and offsets. kDamaged if truncated or not a
// pickle, kUnsupported beyond the limits. The caller must check bytes after STOP (end()).
Result<PickleTree> decode_pickle(BytesView bytes, const std::string& file, std::uint64_t base = 0,
                                 const PickleLimits& limits = {});

}  // namespace shw
