// The header of an item, and the result of checking its data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/tensor/dtype.h"
#include "core/tensor/float_counts.h"
#include "core/tensor/shape.h"

namespace shw {

// The item's own description of its tensor, without the payload.
struct ItemHeader {
  Dtype dtype = Dtype::kUnknown;
  Extents sizes;
  Extents strides;                   // in elements, as pickled; row-major for raw items
  std::int64_t storage_offset = 0;   // in elements
  std::uint64_t payload_offset = 0;  // absolute in the file (compressed: in the decompressed item)
  std::uint64_t payload_length = 0;  // bytes of the storage
  std::optional<std::uint32_t>
      payload_crc;  // CRC of the storage record; nullopt if the writer left all CRCs zero
  bool big_endian = false;
  bool conjugate = false;  // elements must be conjugated / negated after reading
  bool negative = false;
  bool compressed = false;
};

// Result of a pass over an item's payload. Holes are not read: their zeros are added to the CRC
// arithmetically.
struct DataCheck {
  enum class Crc { kMatches, kAbsent, kDiffers } crc = Crc::kAbsent;
  std::uint32_t expected = 0, actual = 0;
  std::string record;  // "archive/data/0": the first record with a mismatch
  std::uint64_t record_offset = 0, record_length = 0;  // absolute in the file
  // Statistics, if requested and possible.
  std::optional<FloatCounts> floats = {};
};

}  // namespace shw
