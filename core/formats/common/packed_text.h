// Long texts inside JSON: zstd, then padded base64 (RFC 4648).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace shw {

std::string packed_text(std::string_view text);
// kDamaged if invalid. Fails before decompressing more than `limit` bytes.
Result<std::string> unpacked_text(std::string_view packed, std::uint64_t limit);

}  // namespace shw
