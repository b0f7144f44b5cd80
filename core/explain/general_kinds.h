// Kinds of messages that no pattern of the tables matches, recognised by groups of words alone.
#pragma once

#include <string_view>

#include "core/explain/message_kinds.h"

namespace shw {

// The first row of sentences (MessageWords) that `sentence` (lower case) fits; null if none.
const MessageKind* match_general_kind(std::string_view sentence);
// What the code did that raised the error: the innermost place of a traceback (lower case) that a
// row of tracebacks fits; null if none.
const MessageKind* traceback_kind(std::string_view text);

}  // namespace shw
