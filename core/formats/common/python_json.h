// JSON as Python writes and reads it, with NaN, Infinity and -Infinity as numbers. Python's json
// loads such an index, but standard JSON parsers reject it.
#pragma once

#include <string>
#include <string_view>

namespace shw {

// Replaces each of these numbers by null.
std::string replace_non_json_floats(std::string_view text);
// Replaces them by the text "\u0000NaN", which no name contains, and restores them after a rewrite.
std::string quote_non_json_numbers(std::string_view text);
std::string unquote_non_json_numbers(std::string text);

}  // namespace shw
