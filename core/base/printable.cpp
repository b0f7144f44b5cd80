#include "core/base/printable.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "core/base/utf8.h"

namespace shw {
namespace {

// True for characters that act invisibly: control characters, bidirectional marks, line separators,
// zero-width spaces, and invalid code points.
bool is_invisible_character(std::uint32_t letter) {
  constexpr std::pair<std::uint32_t, std::uint32_t> kUnseen[] = {
      {0x00, 0x1F},     {0x7F, 0x9F},     {0x61C, 0x61C},    {0x200B, 0x200B},
      {0x200E, 0x200F}, {0x2028, 0x202E}, {0x2060, 0x2069},  {0xFEFF, 0xFEFF},
      {0xFFF9, 0xFFFB}, {0xFFFE, 0xFFFF}, {0xE0000, 0xE007F}};
  return std::any_of(std::begin(kUnseen), std::end(kUnseen), [&](const auto& range) {
    return letter >= range.first && letter <= range.second;
  });
}

// Escapes control characters as octal bytes, three digits each so that following digits are not
// included.
std::string escaped_shell_word(std::string_view text) {
  std::string out = "$'";
  while (!text.empty()) {
    std::string shown;
    std::size_t length = add_printable(shown, text);
    bool is_shown = shown == text.substr(0, length);
    for (char c : text.substr(0, length)) {
      if (!is_shown)
        out += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
      else
        out += (c == '\'' || c == '\\' ? "\\" : "") + std::string(1, c);
    }
    text.remove_prefix(length);
  }
  return out + "'";
}

}  // namespace

std::size_t add_printable(std::string& out, std::string_view text) {
  auto [letter, length] = decode_code_point(text);
  if (is_surrogate(letter)) {
    letter = static_cast<unsigned char>(text.front());
    length = 0;
  }
  if (length != 0 && !is_invisible_character(letter)) {
    out += text.substr(0, length);
    return length;
  }
  out += letter < 0x100     ? fmt::format("\\x{:02x}", letter)
         : letter < 0x10000 ? fmt::format("\\u{:04x}", letter)
                            : fmt::format("\\U{:08x}", letter);
  return std::max<std::size_t>(length, 1);
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) text.remove_prefix(add_printable(out, text));
  return out;
}

std::string shell_word(const std::string& text) {
  bool plain =
      !text.empty() && text.front() != '-' && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
               std::string_view("_-./=:,@+%").find(c) != std::string_view::npos;
      });
  if (plain) return text;
  if (printable(text) != text) return escaped_shell_word(text);
  std::string out = "'";
  for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace shw
