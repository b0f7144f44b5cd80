#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace shw {

using Bytes = std::vector<std::byte>;
using BytesView = std::span<const std::byte>;

// Equals a == b of two byte vectors, which compares byte by byte in libstdc++ 12.
inline bool same_bytes(BytesView a, BytesView b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

}  // namespace shw
