// Identifies unsupported files by their first bytes, so that a file under a wrong name, or a web
// page saved in its place, is named in the error.
#pragma once

#include <string_view>

#include "core/base/bytes.h"

namespace shw {

// Enough for all signatures: that of a tar archive is at byte 257.
inline constexpr std::size_t kFirstBytes = 512;

// "a GGUF file (llama.cpp)"; empty if unknown.
std::string_view format_from_magic(BytesView bytes);

}  // namespace shw
