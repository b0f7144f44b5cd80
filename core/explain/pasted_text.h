// Removes what terminals, launchers and logs add to text.
#pragma once

#include <string>
#include <string_view>

namespace shw {

// Normalised text: single spaces, "\n" line ends, no colours, no rank or time prefixes; also in
// lower case.
struct PastedText {
  std::string text, lower;
};
// ASCII digits, independent of the locale.
inline bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

PastedText pasted_text(std::string_view text);

}  // namespace shw
