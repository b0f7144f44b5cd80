#include "core/report/text_words.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/base/utf8.h"

namespace shw {
namespace {

// True for characters that act invisibly: control characters, bidirectional marks, line separators,
// zero-width spaces, and invalid code points.
bool is_unseen(std::uint32_t letter) {
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
  auto [letter, length] = first_letter(text);
  if (is_surrogate(letter)) {
    letter = static_cast<unsigned char>(text.front());
    length = 0;
  }
  if (length != 0 && !is_unseen(letter)) {
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

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string padded(const std::string& text, std::size_t width) {
  std::size_t used = display_width(text);
  return used < width ? text + std::string(width - used, ' ') : text;
}

std::string right_aligned(const std::string& text, std::size_t width) {
  std::size_t used = display_width(text);
  return used < width ? std::string(width - used, ' ') + text : text;
}

std::size_t shared_path(std::span<const std::string> names) {
  if (names.size() < 2) return 0;
  std::size_t shared = names.front().size();
  for (const std::string& name : names) {
    std::size_t same = 0;
    while (same < shared && same < name.size() && name[same] == names.front()[same]) ++same;
    shared = same;
  }
  std::size_t dot = names.front().rfind('.', shared == 0 ? 0 : shared - 1);
  return dot == std::string::npos ? 0 : dot;
}

std::string short_number(double number) {
  return fmt::format("{:.3g}", number);
}

std::string share(std::uint64_t part, std::uint64_t of) {
  if (part == 0) return "0";
  if (part == of) return "all";
  double percent = 100 * static_cast<double>(part) / static_cast<double>(of);
  return percent < 0.1 ? "<0.1%" : fmt::format("{:.1f}%", std::min(percent, 99.9));
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

std::string depth_option(Depth depth) {
  return depth == Depth::kData ? " --data" : " --depth " + std::string(name(depth));
}

// Where a word ends. A command between backticks is one word: it is copied whole.
static std::size_t end_of_word(const std::string& text, std::size_t at) {
  constexpr std::size_t kLongestCommand = 300;
  std::size_t end = std::min(text.find(' ', at), text.size());
  const std::size_t open = text.find('`', at);
  if (open >= end) return end;
  const std::size_t close = text.find('`', open + 1);
  if (close != text.npos && close > end && close - open < kLongestCommand)
    end = std::min(text.find(' ', close), text.size());
  return end;
}

std::string wrapped(const std::string& text, std::size_t indent, std::size_t width) {
  std::string out, line;
  std::size_t room = width > indent + 20 ? width - indent : 20;
  auto finish_line = [&] {
    if (!out.empty()) out += '\n';
    out += std::string(indent, ' ') + line;
    line.clear();
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = end_of_word(text, at);
    std::string word = text.substr(at, end - at);
    at = end + 1;
    if (!line.empty() && display_width(line) + 1 + display_width(word) > room) finish_line();
    if (!line.empty()) line += ' ';
    line += word;
  }
  finish_line();
  return out;
}

}  // namespace shw
