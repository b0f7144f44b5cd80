// Codecs for the elements of zarr chunks.
#pragma once

#include "core/model/format.h"

namespace shw {

enum class ZarrCompression : std::uint8_t { kNone, kZstd, kGzip, kZlib, kCount };

struct ZarrPipe {
  ZarrCompression compression = ZarrCompression::kNone;
  bool is_big_endian = false;
  bool has_checksum = false;  // a CRC-32C follows the bytes
};

const Codec& zarr_codec(const ZarrPipe& pipe);
// For chunks that were not written because all their elements are 0.
extern const Codec kZarrZerosCodec;

}  // namespace shw
