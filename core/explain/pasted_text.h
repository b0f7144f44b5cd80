// What a person pasted, without what terminals, launchers and logs put into it.
#pragma once

#include <string>
#include <string_view>

namespace shw {

// The text with single spaces, "\n" where a line ended, no colours and no prefixes of ranks and
// times; and the same in lower case.
struct PastedText {
  std::string text, lower;
};
// In the plain set, whatever the locale is.
inline bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

PastedText pasted_text(std::string_view text);

}  // namespace shw
