#include "views/text.h"

#include <fmt/core.h>

#include <array>
#include <cstdio>

namespace shw {
namespace {

constexpr std::string_view kEllipsis = "…";

bool starts_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0u) != 0x80u;
}

template <class... Arguments>
std::string formatted(const char* format, Arguments... arguments) {
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), format, arguments...);
  return buffer.data();
}

}  // namespace

std::string duration_text(double seconds) {
  if (seconds < 9.95) return formatted("%.1f s", seconds);
  if (seconds < 119.5) return formatted("%.0f s", seconds);
  if (seconds < 5970) return formatted("%.0f min", seconds / 60);
  if (seconds > 1e8) return "years";
  long minutes = static_cast<long>(seconds / 60);
  return formatted("%ld h %02ld min", minutes / 60, minutes % 60);
}

std::string times_text(ExtentsView shape) {
  if (shape.empty()) return "scalar";
  std::string text;
  for (std::int64_t extent : shape) text += fmt::format("{}{}", text.empty() ? "" : "×", extent);
  return text;
}

std::string elide_middle(std::string_view text, float width, const Measure& measure) {
  if (measure(text) <= width) return std::string(text);
  auto shortened = [&](std::size_t kept) {
    std::size_t head = kept / 2, tail = text.size() - (kept - head);
    while (head > 0 && !starts_character(text[head])) --head;
    while (tail < text.size() && !starts_character(text[tail])) ++tail;
    while (tail < text.size() && text[tail] == '.') ++tail;  // "coordin….": one stop is enough
    return std::string(text.substr(0, head)) + std::string(kEllipsis) +
           std::string(text.substr(tail));
  };
  std::size_t fits = 0, too_long = text.size();
  while (fits + 1 < too_long) {
    std::size_t middle = fits + (too_long - fits) / 2;
    (measure(shortened(middle)) <= width ? fits : too_long) = middle;
  }
  return shortened(fits);
}

std::string elide_end(std::string_view text, float width, const Measure& measure) {
  if (measure(text) <= width) return std::string(text);
  auto shortened = [&](std::size_t kept) {
    while (kept > 0 && !starts_character(text[kept])) --kept;
    while (kept > 0 && (text[kept - 1] == ' ' || text[kept - 1] == '.')) --kept;
    return std::string(text.substr(0, kept)) + std::string(kEllipsis);
  };
  std::size_t fits = 0, too_long = text.size();
  while (fits + 1 < too_long) {
    std::size_t middle = fits + (too_long - fits) / 2;
    (measure(shortened(middle)) <= width ? fits : too_long) = middle;
  }
  return shortened(fits);
}

std::string elide_path(std::string_view text, float width, const Measure& measure) {
  if (measure(text) <= width) return std::string(text);
  for (std::size_t at = text.find_first_of("./"); at != text.npos;
       at = text.find_first_of("./", at + 1)) {
    std::string tail = std::string(kEllipsis) + std::string(text.substr(at + 1));
    if (measure(tail) <= width) return tail;
  }
  return elide_middle(text, width, measure);
}

}  // namespace shw
