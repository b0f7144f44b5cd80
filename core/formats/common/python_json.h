// JSON as Python writes and reads it: NaN, Infinity and -Infinity stand where a number may. Such an
// index loads everywhere that Python's json reads it, and no parser of JSON takes it.
#pragma once

#include <string>
#include <string_view>

namespace shw {

// The same text with each of them as null.
std::string replace_non_json_floats(std::string_view text);
// As the text "\u0000NaN", which no name of a file or tensor is, and back: for a rewrite.
std::string quote_non_json_numbers(std::string_view text);
std::string unquote_non_json_numbers(std::string text);

}  // namespace shw
