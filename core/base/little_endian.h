// Reads and writes little-endian numbers, the byte order of all supported formats.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <span>

namespace shw {

static_assert(std::endian::native == std::endian::little,
              "bytes of files are used as they are in memory");

// Precondition: sizeof(T) bytes exist at `at`.
template <class T>
requires std::integral<T> || std::floating_point<T> T load_little(std::span<const std::byte> bytes,
                                                                  std::size_t at = 0) {
  T value;
  std::memcpy(&value, bytes.subspan(at, sizeof(T)).data(), sizeof(T));
  return value;
}

}  // namespace shw
