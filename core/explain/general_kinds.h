// Kinds of sentences that no row of the tables has, told by groups of words alone.
#pragma once

#include <string_view>

#include "core/explain/message_kinds.h"

namespace shw {

// The first kind of which each group of words has one in `text`, in lower case; null if none.
const MessageKind* general_kind(std::string_view text);

}  // namespace shw
