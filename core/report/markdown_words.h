// Escaping for Markdown, so that text from files is not interpreted.
#pragma once

#include <string>
#include <string_view>

namespace shw {

// A code span with enough backticks for its content.
std::string code_span(std::string_view text);
std::string code_block(const std::string& text);
// Prose with escaped Markdown and HTML, since it may quote names.
std::string prose(std::string_view text);
// Escapes bars as well, which end table cells even inside code spans.
std::string table_cell(std::string text);
// GitHub's <details>; `summary` must not come from a file.
std::string fold(const std::string& summary, const std::string& body);

}  // namespace shw
