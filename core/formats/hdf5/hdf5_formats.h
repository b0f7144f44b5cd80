#pragma once

#include "core/formats/hdf5/hdf5_object.h"
#include "core/model/format.h"

namespace shw {

extern const Format kHdf5Format;
// Of elements that are not read: its name says why.
const Codec& unread_codec(Hdf5Unread unread);

}  // namespace shw
