// Inflates deflated data (a zip record, an HDF5 chunk) as a sequential
// stream.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/formats/zip/byte_stream.h"

namespace shw {

// The container of the deflated bytes.
enum class DeflateForm : std::uint8_t { kBare, kZlib };

struct DeflatedBytes {
  std::string what;                          // "the deflated record \"archive/data/0\""
  std::uint64_t begin = 0;                   // in the source
  std::uint64_t stored_length = 0;           // compressed bytes
  std::optional<std::uint64_t> length = {};  // inflated bytes; nullopt: known only at the end
  DeflateForm form = DeflateForm::kBare;
};
// kDamaged if the data ends early or has another length than announced.
Result<std::unique_ptr<ByteStream>> inflating_stream(std::shared_ptr<const ByteSource> source,
                                                     const DeflatedBytes& deflated);

}  // namespace shw
