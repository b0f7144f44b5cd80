// The record of filled data inside a checkpoint: JSON (facts/storage/filled.h) under this
// name, as a text attribute of .metadata, which torch ignores, or as an entry of a
// safetensors __metadata__. Both openers store it in Provenance::plain_attributes as pickle
// opcodes.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace shw {

inline constexpr std::string_view kFilledAttribute = "shardwright_filled";

// The text as a BINUNICODE opcode.
inline std::string pickled_text(std::string_view text) {
  auto length = static_cast<std::uint32_t>(text.size());
  std::string out(1 + sizeof length, 'X');
  std::memcpy(out.data() + 1, &length, sizeof length);
  return out.append(text);
}

// Inverse of pickled_text(); nullopt for other values.
inline std::optional<std::string> text_of_binunicode(std::string_view value) {
  std::uint32_t length = 0;
  if (value.size() < 1 + sizeof length || value.front() != 'X') return std::nullopt;
  std::memcpy(&length, value.data() + 1, sizeof length);
  if (length != value.size() - 1 - sizeof length) return std::nullopt;
  return std::string(value.substr(1 + sizeof length));
}

}  // namespace shw
