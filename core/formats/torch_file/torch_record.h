// The codecs of a torch.save file's storages: elements as they lie, and behind them the zip
// record's descriptor with their CRC.
#pragma once

#include "core/model/format.h"

namespace shw {

extern const Codec kTorchRecordCodec;     // little-endian
extern const Codec kTorchRecordBigCodec;  // written on a big-endian machine

}  // namespace shw
