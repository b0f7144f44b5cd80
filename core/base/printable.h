// Names from files in a form that is safe for terminals and shells.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shw {

// Makes text from files safe for a terminal: escape sequences would be executed, and bidirectional
// marks would fake another name. Such characters become \xNN or \uNNNN, as do bytes that are not
// UTF-8.
std::string printable(std::string_view text);
// Appends the first character of a non-empty text like printable(); returns its length in bytes.
std::size_t add_printable(std::string& out, std::string_view text);
// Quotes a word for the shell if needed: with single quotes, or as $'\033' for control characters
// (bash, zsh, ksh, POSIX 2024).
std::string shell_word(const std::string& text);

}  // namespace shw
