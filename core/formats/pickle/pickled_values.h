// Values as pickle opcodes (protocol 2), for small files that are written whole.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace shw {

inline std::string pickled_key(std::string_view text) {
  const auto length = static_cast<std::uint32_t>(text.size());
  std::string out(1 + sizeof length, 'X');
  std::memcpy(out.data() + 1, &length, sizeof length);
  return out.append(text);
}
inline std::string pickled_int(std::int64_t value) {
  std::string out = "\x8a\x08";  // LONG1
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
  return out;
}
inline std::string pickled_real(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  std::string out = "G";  // BINFLOAT, big-endian
  for (int shift = 56; shift >= 0; shift -= 8) out += static_cast<char>(bits >> shift & 0xff);
  return out;
}
inline std::string pickled_bool(bool value) {
  return value ? "\x88" : "\x89";
}

}  // namespace shw
