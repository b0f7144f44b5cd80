// Which program printed a pasted text.
#pragma once

#include <string_view>

namespace shw {

// "vLLM", by the last file of a traceback or the last word in lower-case `text` that only one
// program prints; empty if it has none.
std::string_view program_of_message(std::string_view text);

}  // namespace shw
