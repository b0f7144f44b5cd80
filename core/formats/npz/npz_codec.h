// Codecs for the elements of numpy arrays.
#pragma once

#include "core/model/format.h"

namespace shw {

// is_deflated: an item is the archive's record, which begins with the array's header.
const Codec& npz_codec(bool is_deflated, bool is_big_endian);

}  // namespace shw
