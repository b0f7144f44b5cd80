// Finds loader messages in pasted text: a single line, or the tracebacks of all
// ranks.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "core/explain/error_message.h"

namespace shw {

struct ErrorText {
  std::vector<ErrorMessage> messages;  // distinct, in text order, at most kMaxMessages
  std::size_t left_out = 0;            // number of further distinct messages
  bool cut = false;                    // only the last kMaxErrorText bytes were read
};
inline constexpr std::size_t kMaxMessages = 256;
inline constexpr std::size_t kMaxErrorText = std::size_t{1} << 20;

// Never fails: unknown text gives no messages. Linear in the length of the
// text.
ErrorText parse_error_text(std::string_view text);

}  // namespace shw
