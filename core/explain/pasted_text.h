// Removes what terminals, launchers and logs add to text.
#pragma once

#include <string>
#include <string_view>

#include "core/base/letter_case.h"

namespace shw {

// Normalised text: single spaces, "\n" line ends, no colours, no rank or time prefixes; also in
// lower case.
struct PastedText {
  std::string text, lower;
};
PastedText pasted_text(std::string_view text);

}  // namespace shw
