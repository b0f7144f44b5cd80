// Codecs shared by several formats.
#pragma once

#include "core/model/format.h"

namespace shw {

// A complete torch.save archive of one tensor, with a CRC for every record.
extern const Codec kTorchZipCodec;
// Little-endian elements only: row-major, or as the chunk's view of its storage says.
extern const Codec kRawCodec;

}  // namespace shw
