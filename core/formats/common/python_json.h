// JSON as Python writes and reads it: NaN, Infinity and -Infinity stand where a number may. Such an
// index loads everywhere that Python's json reads it, and no parser of JSON takes it.
#pragma once

#include <string>
#include <string_view>

namespace shw {

// The same text with each of them as null.
std::string with_null_for_odd_numbers(std::string_view text);
// As the text "\u0000NaN", which no name of a file or tensor is, and back: for a rewrite.
std::string with_quoted_odd_numbers(std::string_view text);
std::string with_odd_numbers_again(std::string text);

}  // namespace shw
