// CRC-32 by carry-less multiplication of 256-bit vectors (VPCLMULQDQ with AVX2: AMD since Zen 3,
// Intel since Ice Lake). libdeflate has it since 1.20; Debian 12 ships 1.14 and Ubuntu 24.04 1.19,
// which use 128 bits at half the speed.
#pragma once

#include <cstdint>

#include "core/io/source.h"

namespace shw {

// True if this processor supports it and libdeflate does not use it itself.
bool can_fold_crc32();

// Equals crc32_of(); requires can_fold_crc32().
std::uint32_t crc32_folded(BytesView bytes, std::uint32_t crc);

}  // namespace shw
