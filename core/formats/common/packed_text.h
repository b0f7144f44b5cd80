// Long texts inside of JSON: zstd, then base64 (RFC 4648, padded).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace shw {

std::string packed_text(std::string_view text);
// kDamaged where it is none. More than `limit` bytes are refused before they are made.
Result<std::string> unpacked_text(std::string_view packed, std::uint64_t limit);

}  // namespace shw
