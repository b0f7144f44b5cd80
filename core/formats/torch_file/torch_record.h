// Codecs of a torch.save file's storages: uncompressed elements, followed by the zip record's
// descriptor with their CRC.
#pragma once

#include "core/model/format.h"

namespace shw {

extern const Codec kTorchRecordCodec;     // little-endian
extern const Codec kTorchRecordBigCodec;  // written on a big-endian machine

}  // namespace shw
