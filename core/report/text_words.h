// Small things that text for terminals is made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/facts/depth.h"

namespace shw {

// Names come from files: an escape sequence in one would be obeyed by the terminal, a mark that
// turns the order of letters would show another name. Such letters as \xNN or \uNNNN, and so bytes
// that are no UTF-8.
std::string printable(std::string_view text);
// The same of the first letter of a text that is not empty; its length in bytes.
std::size_t add_printable(std::string& out, std::string_view text);
// Columns, counting a UTF-8 character as one.
std::size_t display_width(std::string_view text);
std::string padded(const std::string& text, std::size_t width);
std::string right_aligned(const std::string& text, std::size_t width);  // as numbers stand
// Letters before the dot up to which all names agree, 0 where they do not: below the first,
// "….tail" says the others without a doubt.
std::size_t shared_path(std::span<const std::string> names);
// "1.23e-05": three digits.
std::string short_number(double number);
// "0", "<0.1%", "12.5%", "all".
std::string share(std::uint64_t part, std::uint64_t of);
// In single quotes where the shell would read it otherwise; as $'\033' where a terminal would obey
// it (bash, zsh, ksh, POSIX 2024).
std::string shell_word(const std::string& text);

// " --data", " --depth metadata": behind a command that is to look as deep.
std::string depth_option(Depth depth);

// Words wrapped at `width` columns, every line indented by `indent`; no newline at the end. A
// command between backticks stays on one line, however long it is.
std::string wrapped(const std::string& text, std::size_t indent, std::size_t width);

}  // namespace shw
