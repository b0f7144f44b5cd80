#pragma once

#include "core/formats/hdf5/hdf5_object.h"
#include "core/model/format.h"

namespace shw {

extern const Format kHdf5Format;
// Codec for elements that cannot be read; its name gives the reason.
const Codec& unsupported_codec(Hdf5Unsupported unread);

}  // namespace shw
