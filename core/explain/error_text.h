// What a loader said when it stopped, found anywhere in what a person pasted: one line, or the
// tracebacks of all ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tensor/shape.h"

namespace shw {

struct MessageKind;  // message_kinds.h

struct ErrorMessage {
  const MessageKind* kind = nullptr;
  std::string name;        // of a tensor, a file or a class; empty where the message has none
  Extents saved, current;  // where the message has both
  // Others that the message says, by the name that its pattern gives them: "saved_world" 4.
  std::vector<std::pair<std::string_view, std::int64_t>> numbers = {};
  friend bool operator==(const ErrorMessage&, const ErrorMessage&) = default;
};

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
