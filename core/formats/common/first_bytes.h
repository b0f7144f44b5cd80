// What a file is by its first bytes, in words, where it is none of what is read: so that a file
// under a wrong name, or a web page that was saved in its place, is told as what it is.
#pragma once

#include <string_view>

#include "core/base/bytes.h"

namespace shw {

// So many bytes are enough: the mark of a tar archive stands at byte 257.
inline constexpr std::size_t kFirstBytes = 512;

// "a GGUF file (llama.cpp)"; empty where it is nothing that is known.
std::string_view told_by_first_bytes(BytesView bytes);

}  // namespace shw
