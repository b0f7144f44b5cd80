// Magic numbers of archives and compressed streams, little-endian.
#pragma once

#include <cstdint>

namespace shw {

constexpr std::uint32_t kZipMagic = 0x04034B50;   // "PK\3\4": APPNOTE 4.3.7
constexpr std::uint32_t kZstdMagic = 0xFD2FB528;  // RFC 8878, 3.1.1

}  // namespace shw
