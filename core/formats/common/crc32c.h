// CRC-32C (Castagnoli, reflected 0x82F63B78), as OCDBT and zarr have it.
#pragma once

#include <cstdint>

#include "core/base/bytes.h"

namespace shw {

// Of what came before (0 at the start), carried on over `bytes`.
std::uint32_t crc32c_of(BytesView bytes, std::uint32_t crc = 0);

}  // namespace shw
