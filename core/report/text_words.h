// Small things that text for terminals is made of.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shw {

// Control characters as \xNN: names come from files, and an escape sequence in one would be obeyed
// by the terminal.
std::string printable(std::string_view text);
// Columns, counting a UTF-8 character as one.
std::size_t display_width(std::string_view text);
std::string padded(const std::string& text, std::size_t width);
// "a.b.c.weight" beside "a.b.d.weight": "….c.weight". Unchanged where nothing is shared.
std::string shortened(const std::string& fqn, const std::string& beside);
// In single quotes where the shell would read it otherwise.
std::string shell_word(const std::string& text);

}  // namespace shw
