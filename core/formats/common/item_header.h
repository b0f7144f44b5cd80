// What is known of one item: what it says of itself, and whether its bytes are those that were
// written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/tensor/dtype.h"
#include "core/tensor/float_counts.h"
#include "core/tensor/shape.h"

namespace shw {

// What the item itself says about its tensor, without its payload.
struct ItemHeader {
  Dtype dtype = Dtype::kUnknown;
  Extents sizes;
  Extents strides;                  // in elements, as pickled; row-major for raw items
  std::int64_t storage_offset = 0;  // in elements
  std::uint64_t payload_offset =
      0;  // absolute, in the file (in the decompressed item where it is compressed)
  std::uint64_t payload_length = 0;  // bytes of the storage
  std::optional<std::uint32_t>
      payload_crc;  // of the storage record; nothing where the writer left all CRCs zero
  bool big_endian = false;
  bool conjugate = false;  // bytes hold the conjugate of / the negated values
  bool negative = false;
  bool compressed = false;
};

// What a pass over the payload of one item found. Holes of sparse files are not read: zeros are
// combined into the CRC.
struct DataCheck {
  enum class Crc { kMatches, kAbsent, kDiffers } crc = Crc::kAbsent;
  std::uint32_t expected = 0, actual = 0;
  std::string record;  // "archive/data/0": the first record that differs
  std::uint64_t record_offset = 0, record_length = 0;  // absolute, in the file
  // What the elements are, where it was asked for and could be counted.
  std::optional<FloatCounts> floats = {};
};

}  // namespace shw
