// Deflated bytes (a record of a zip archive, a tile of HDF5), inflated while they are read from
// front to back.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/formats/common/byte_stream.h"

namespace shw {

// What its bytes stand in.
enum class DeflateForm : std::uint8_t { kBare, kZlib };

struct DeflatedBytes {
  std::string what;                          // "the deflated record \"archive/data/0\""
  std::uint64_t begin = 0;                   // in the source
  std::uint64_t stored_length = 0;           // bytes there
  std::optional<std::uint64_t> length = {};  // inflated; nothing where only their end tells
  DeflateForm form = DeflateForm::kBare;
};
// kDamaged where they do not come to as many bytes as were announced, or not to an end.
Result<std::unique_ptr<ByteStream>> inflating_stream(std::shared_ptr<const ByteSource> source,
                                                     const DeflatedBytes& deflated);

}  // namespace shw
