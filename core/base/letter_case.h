// Letters and digits of ASCII, independent of the locale; all other bytes are left unchanged.
#pragma once

#include <string>
#include <string_view>

namespace shw {

inline char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
inline char upper(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}
constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
std::string lowered(std::string_view text);
std::string uppered(std::string_view text);

}  // namespace shw
