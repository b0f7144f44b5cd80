// What a loader said when it stopped, found anywhere in what a person pasted: one line, or the
// tracebacks of all ranks.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "core/explain/error_message.h"

namespace shw {

struct ErrorText {
  std::vector<ErrorMessage> messages;  // each once, in the order of the text, at most kMaxMessages
  std::size_t left_out = 0;            // distinct ones beyond that
  bool cut = false;                    // only the last kMaxErrorText bytes were read
};
inline constexpr std::size_t kMaxMessages = 256;
inline constexpr std::size_t kMaxErrorText = std::size_t{1} << 20;

// Never fails: what is not understood gives no message. Takes time in proportion to the text,
// whatever it holds.
ErrorText parse_error_text(std::string_view text);

}  // namespace shw
