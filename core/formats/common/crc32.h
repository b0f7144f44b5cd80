// CRC-32 as zip has it (reflected 0xEDB88320), fast enough not to be what a data check waits for.
#pragma once

#include <cstdint>

#include "core/io/source.h"

namespace shw {

// The CRC of what came before (0 at the start) carried on over `bytes`.
std::uint32_t crc32_of(BytesView bytes, std::uint32_t crc = 0);
// Carried on over `count` zero bytes, in time logarithmic in `count`: how a hole is checked.
std::uint32_t crc32_of_zeros(std::uint32_t crc, std::uint64_t count);
// The CRC of two parts put together, the second `second_length` bytes long.
std::uint32_t crc32_joined(std::uint32_t first, std::uint32_t second, std::uint64_t second_length);

}  // namespace shw
