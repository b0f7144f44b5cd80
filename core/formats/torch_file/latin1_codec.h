// Elements that Python 3 wrote into a pickle of protocol 2 or below: UTF-8 of the characters 0 to
// 255, one per byte.
#pragma once

#include "core/model/format.h"

namespace shw {

extern const Codec kLatin1Codec;
extern const Codec kLatin1BigCodec;  // big-endian elements
extern const Codec kBytesBigCodec;   // big-endian elements, as they are

}  // namespace shw
