// The checksum of newer metadata blocks: the hash "lookup3" of all preceding bytes.
#pragma once

#include <cstdint>

#include "core/base/bytes.h"

namespace shw {

// hashlittle(), initialised with 0, of Bob Jenkins' lookup3.c (public domain); bytewise.
std::uint32_t hdf5_checksum(BytesView bytes);

}  // namespace shw
