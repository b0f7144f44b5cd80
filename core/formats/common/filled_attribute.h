// The record of what repairs filled, as it travels inside a checkpoint: JSON (core/rules/filled.h)
// under this name, in .metadata a text attribute of Metadata that every torch passes over, in a
// safetensors file an entry of its __metadata__. Both openers put it among the plain attributes of
// Provenance, whose values are pickle opcodes.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace shw {

inline constexpr std::string_view kFilledAttribute = "shardwright_filled";

// BINUNICODE: what makes the text in a pickle.
inline std::string pickled_text(std::string_view text) {
  auto length = static_cast<std::uint32_t>(text.size());
  std::string out(1 + sizeof length, 'X');
  std::memcpy(out.data() + 1, &length, sizeof length);
  return out.append(text);
}

// The text again; nothing where the value is another one.
inline std::optional<std::string> text_of_pickled(std::string_view value) {
  std::uint32_t length = 0;
  if (value.size() < 1 + sizeof length || value.front() != 'X') return std::nullopt;
  std::memcpy(&length, value.data() + 1, sizeof length);
  if (length != value.size() - 1 - sizeof length) return std::nullopt;
  return std::string(value.substr(1 + sizeof length));
}

}  // namespace shw
