// Matches patterns of message_kinds.h in pasted text.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/explain/error_message.h"
#include "core/explain/pasted_text.h"

namespace shw {

struct FoundMessage {
  std::size_t end = 0;
  ErrorMessage message;            // without a kind
  std::vector<std::string> names;  // of <names>, instead of message.name
};

// The literal prefix of a pattern, used to find candidates.
std::string_view literal_prefix_of_pattern(std::string_view pattern);
// Matches `pattern` with its anchor at `begin`. Reads at most a few thousand characters, except for
// <names>.
std::optional<FoundMessage> read_message(const PastedText& pasted, std::size_t begin,
                                         std::string_view pattern);

}  // namespace shw
