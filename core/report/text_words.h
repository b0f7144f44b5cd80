// Helpers for text on terminals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/base/printable.h"
#include "core/facts/depth.h"

namespace shw {

// Width in columns, one per UTF-8 character.
std::size_t display_width(std::string_view text);
std::string padded(const std::string& text, std::size_t width);
// Right-aligned, for numbers.
std::string right_aligned(const std::string& text, std::size_t width);
// Length of the common prefix of all names, up to and including a dot; 0 if there is none. Lists
// then print later names as "….tail".
std::size_t common_prefix_length_to_dot(std::span<const std::string> names);
// Three significant digits: "1.23e-05".
std::string short_number(double number);
// Percentage as text: "0", "<0.1%", "12.5%", "all".
std::string share(std::uint64_t part, std::uint64_t of);
// " --data", " --depth metadata": option for a command that should check as deeply.
std::string depth_option(Depth depth);

// Wraps words at `width` columns and indents every line by `indent`; no newline at the end. A
// command in backticks stays on one line, whatever its length.
std::string wrapped(const std::string& text, std::size_t indent, std::size_t width);

}  // namespace shw
