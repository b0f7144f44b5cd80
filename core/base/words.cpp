#include "core/base/words.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace shw {

std::string human_bytes(std::uint64_t bytes) {
  static constexpr std::array<const char*, 7> kUnits = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  // 999.5 of a unit would be printed as 1000: use the next unit.
  while (unit + 1 < kUnits.size() && value >= (unit == 0 ? 1000.0 : 999.5)) {
    value /= 1000.0;
    ++unit;
  }
  int digits = unit == 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  // 9.996 would be printed as 10.00.
  if (digits == 2 && std::round(value * 100) >= 1000) digits = 1;
  if (digits == 1 && std::round(value * 10) >= 1000) digits = 0;
  return fmt::format("{:.{}f} {}", value, digits, kUnits[unit]);
}

std::string human_count(std::uint64_t count) {
  std::string text = std::to_string(count);
  for (std::size_t at = text.size(); at > 3;) {
    at -= 3;
    text.insert(at, 1, ',');
  }
  return text;
}

std::string human_seconds(double seconds) {
  // A duration above zero is never shown as 0.
  if (seconds > 0 && seconds < 0.001) return "1 ms";
  if (seconds < 0.9995) return fmt::format("{:.0f} ms", seconds * 1e3);
  if (seconds < 59.5) return fmt::format("{:.{}f} s", seconds, seconds < 9.95 ? 1 : 0);
  // Durations are capped so that the conversion to an integer cannot overflow.
  auto minutes = static_cast<std::uint64_t>(std::min(seconds, 1e12) / 60 + 0.5);
  if (minutes < 60) return fmt::format("{} min", minutes);
  return minutes % 60 == 0 ? fmt::format("{} h", human_count(minutes / 60))
                           : fmt::format("{} h {} min", human_count(minutes / 60), minutes % 60);
}

std::string plural(std::uint64_t count, std::string_view noun) {
  std::string text = human_count(count) + " " + std::string(noun);
  if (count == 1) return text;
  if (text.ends_with("y") && !text.ends_with("ey") && !text.ends_with("ay")) {
    text.pop_back();
    return text + "ies";
  }
  bool hisses = text.ends_with("s") || text.ends_with("x") || text.ends_with("ch");
  return text + (hisses ? "es" : "s");
}

std::string short_list_text(std::span<const std::string> names, std::size_t shown) {
  std::string text;
  std::size_t listed = names.size() <= shown ? names.size() : shown;
  for (std::size_t i = 0; i < listed; ++i) {
    if (i != 0) text += i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  if (listed < names.size()) text += " and " + human_count(names.size() - listed) + " more";
  return text;
}

bool contains_any(std::string_view text, std::span<const std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return text.find(word) != std::string_view::npos;
  });
}

std::optional<std::uint32_t> consume_number(std::string_view& text) {
  std::uint32_t value = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

}  // namespace shw
