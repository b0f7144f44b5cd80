#include "core/report/visible_controls.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>

#include "core/base/utf8.h"

namespace shw {
namespace {

bool is_control_or_bidi(std::uint32_t letter) {
  return (letter >= 0x7F && letter <= 0x9F) || (letter >= 0x200E && letter <= 0x200F) ||
         (letter >= 0x202A && letter <= 0x202E) || (letter >= 0x2066 && letter <= 0x2069) ||
         letter == 0x61C;
}

bool is_beyond_plain_text(char c) {
  return static_cast<unsigned char>(c) >= 0x7F;
}

}  // namespace

std::string with_visible_controls(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (true) {
    const auto plain = static_cast<std::size_t>(
        std::find_if(text.begin(), text.end(), is_beyond_plain_text) - text.begin());
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) return out;
    // Decodes whole characters, because continuation bytes may look like controls.
    auto [letter, length] = decode_code_point(text);
    if (length == 0) letter = static_cast<unsigned char>(text.front());
    if (is_control_or_bidi(letter))
      out += fmt::format("\\u{:04x}", letter);
    else
      out += text.substr(0, std::max<std::size_t>(length, 1));
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
}

}  // namespace shw
