// A deflated record of a zip archive, inflated while it is read from front to back.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/formats/common/byte_stream.h"

namespace shw {

struct DeflatedRecord {
  std::string name;                             // "archive/data/0"
  std::uint64_t data = 0;                       // where its bytes begin in the source
  std::uint64_t stored_length = 0, length = 0;  // bytes there, and inflated
};
// kDamaged where it does not come to as many bytes as it announces.
Result<std::unique_ptr<ByteStream>> inflating_stream(std::shared_ptr<const ByteSource> source,
                                                     const DeflatedRecord& record);

}  // namespace shw
