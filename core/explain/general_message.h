// Parses messages that no table row matches by their kind: two shapes, missing or
// unexpected names, two numbers of ranks or experts, a checkpoint that is not
// found.
#pragma once

#include <string_view>
#include <vector>

#include "core/explain/error_message.h"
#include "core/explain/pasted_text.h"

namespace shw {

// At most `most` messages in text order; empty if no kind is certain.
std::vector<ErrorMessage> read_general(const PastedText& pasted, std::size_t most);

// The sentence of the last error, as it is written.
std::string_view last_error_sentence(const PastedText& pasted);

}  // namespace shw
