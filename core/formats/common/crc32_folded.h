// CRC-32 by carry-less multiplication of 256 bits at once (VPCLMULQDQ with AVX2: AMD from Zen 3,
// Intel from Ice Lake). libdeflate does so from 1.20 on; Debian 12 has 1.14 and Ubuntu 24.04 1.19,
// which take 128 bits: half as fast.
#pragma once

#include <cstdint>

#include "core/io/source.h"

namespace shw {

// Whether this processor can, and libdeflate does not by itself.
bool can_fold_crc32();

// What crc32_of() says; only where can_fold_crc32().
std::uint32_t crc32_folded(BytesView bytes, std::uint32_t crc);

}  // namespace shw
