#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace shw {

using Bytes = std::vector<std::byte>;
using BytesView = std::span<const std::byte>;

// As == of two vectors of std::byte, which goes byte by byte (libstdc++ 12).
inline bool same_bytes(BytesView a, BytesView b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

}  // namespace shw
