// CRC-32C (Castagnoli, reflected 0x82F63B78), as used by OCDBT and zarr.
#pragma once

#include <cstdint>

#include "core/base/bytes.h"

namespace shw {

// Continues the CRC of earlier bytes (0 at the start) over `bytes`.
std::uint32_t crc32c_of(BytesView bytes, std::uint32_t crc = 0);

}  // namespace shw
