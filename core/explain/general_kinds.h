// Kinds of messages that no row of the tables matches, recognised by groups of words alone.
#pragma once

#include <string_view>

#include "core/explain/message_kinds.h"

namespace shw {

// The first kind that has a word of each of its groups in `text` (lower case); null if none.
const MessageKind* general_kind(std::string_view text);

}  // namespace shw
