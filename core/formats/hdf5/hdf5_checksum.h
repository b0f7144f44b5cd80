// What stands behind a block of metadata of the newer forms: the hash "lookup3" of all before it.
#pragma once

#include <cstdint>

#include "core/base/bytes.h"

namespace shw {

// Bob Jenkins, lookup3.c (public domain), hashlittle() from 0; byte by byte.
std::uint32_t hdf5_checksum(BytesView bytes);

}  // namespace shw
