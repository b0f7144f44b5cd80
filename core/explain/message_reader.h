// Reads a pattern of message_kinds.h out of a pasted text.
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

// The literal that a pattern begins with: where it stands, the pattern may fit.
std::string_view anchor_of(std::string_view pattern);
// `pattern` where its anchor stands at `begin`. Looks at no more than a few thousand characters,
// but for the list of <names>.
std::optional<FoundMessage> read_message(const PastedText& pasted, std::size_t begin,
                                         std::string_view pattern);

}  // namespace shw
