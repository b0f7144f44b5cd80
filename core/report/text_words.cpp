#include "core/report/text_words.h"

#include <fmt/core.h>

#include <algorithm>

namespace shw {

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

std::size_t common_prefix_length_to_dot(std::span<const std::string> names) {
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

std::string depth_option(Depth depth) {
  return depth == Depth::kData ? " --data" : " --depth " + std::string(name(depth));
}

// End of the word at `at`. A command in backticks is one word, because it is copied whole.
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
