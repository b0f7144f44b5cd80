#include "core/base/byte_count.h"

#include <charconv>

#include "core/base/checked.h"

namespace shw {

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  std::uint64_t number = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (text.empty()) return number;
  constexpr std::string_view kSuffixes = "KMGT", kSmall = "kmgt";
  std::size_t power = kSuffixes.find(text.front());
  if (power == std::string_view::npos) power = kSmall.find(text.front());
  if (power == std::string_view::npos || text.size() != 1) return std::nullopt;
  return checked_mul(number, std::uint64_t{1} << (10 * (power + 1)));
}

}  // namespace shw
