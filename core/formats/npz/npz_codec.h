// How the bytes of a numpy array become its elements.
#pragma once

#include "core/model/format.h"

namespace shw {

// Deflated: the record of the archive, with the header of the array before its elements.
const Codec& npz_codec(bool is_deflated, bool is_big_endian);

}  // namespace shw
