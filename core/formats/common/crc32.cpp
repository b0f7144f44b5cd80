#include "core/formats/common/crc32.h"

#include <libdeflate.h>
#include <zlib.h>

namespace shw {

// libdeflate folds with whatever the processor has; what it cannot do is join two CRCs.
std::uint32_t crc32_of(BytesView bytes, std::uint32_t crc) {
  return libdeflate_crc32(crc, bytes.data(), bytes.size());
}

// A zero byte only multiplies the inverted register by x^8, and joining with an empty CRC does
// exactly that.
std::uint32_t crc32_of_zeros(std::uint32_t crc, std::uint64_t count) {
  return ~crc32_joined(~crc, 0, count);
}

std::uint32_t crc32_joined(std::uint32_t first, std::uint32_t second, std::uint64_t second_length) {
  // zlib takes a signed length: 2^62 at a time is more than any file.
  return static_cast<std::uint32_t>(
      ::crc32_combine(first, second, static_cast<z_off_t>(second_length)));
}

}  // namespace shw
