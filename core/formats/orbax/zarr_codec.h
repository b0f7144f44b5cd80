// How the bytes of a zarr chunk become its elements.
#pragma once

#include "core/model/format.h"

namespace shw {

enum class ZarrCompression : std::uint8_t { kNone, kZstd, kGzip, kZlib, kCount };

struct ZarrPipe {
  ZarrCompression compression = ZarrCompression::kNone;
  bool is_big_endian = false;
  bool has_checksum = false;  // CRC-32C behind the bytes
};

const Codec& zarr_codec(const ZarrPipe& pipe);
// Of chunks that were not written since all of their elements are 0.
extern const Codec kZarrZerosCodec;

}  // namespace shw
