// Parses the few opcodes that entries of `.metadata` consist of. Callers guarantee enough bytes;
// other opcodes are not consumed.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "core/base/utf8.h"

namespace shw {

// Never used as an index, so it can mean "none yet".
inline constexpr std::uint32_t kNoMemoIndex = 0xFFFFFFFFu;

// Parses BINGET or LONG_BINGET of another index.
inline bool consume_memo_index(const std::uint8_t*& at, std::uint32_t& index) {
  if (*at == 'h') {
    index = at[1];
    at += 2;
    return true;
  }
  if (*at != 'j') return false;
  std::memcpy(&index, at + 1, 4);
  if (index == kNoMemoIndex) return false;
  at += 5;
  return true;
}

// BININT1, BININT2, BININT, or LONG1 of up to 8 bytes
inline bool consume_integer(const std::uint8_t*& at, std::int64_t& value) {
  switch (*at) {
    case 'K':
      value = at[1];
      at += 2;
      return true;
    case 'M':
      value = at[1] | at[2] << 8;
      at += 3;
      return true;
    case 'J': {
      std::int32_t word = 0;
      std::memcpy(&word, at + 1, 4);
      value = word;
      at += 5;
      return true;
    }
    case 0x8a: {
      std::size_t length = at[1];
      if (length == 0 || length > 8) return false;
      std::uint64_t bits = 0;
      std::memcpy(&bits, at + 2, length);
      std::size_t unused = 64 - 8 * length;
      value = static_cast<std::int64_t>(bits << unused) >> unused;
      at += 2 + length;
      return true;
    }
    default:
      return false;
  }
}

// SHORT_BINUNICODE, or BINUNICODE (protocol 2) of up to 255 bytes. Invalid UTF-8 is left to the
// general parser, which reports it.
inline bool consume_short_text(const std::uint8_t*& at, std::string_view& text) {
  std::uint32_t length = at[1];
  std::size_t head = 2;
  if (*at == 'X') {
    std::memcpy(&length, at + 1, 4);
    head = 5;
  } else if (*at != 0x8c) {
    return false;
  }
  if (length > 255) return false;
  text = {reinterpret_cast<const char*>(at + head), length};
  if (!is_utf8_or_surrogates(text)) return false;
  at += head + length;
  return true;
}

}  // namespace shw
