// What Markdown is made of: nothing that comes from a file is markup in it.
#pragma once

#include <string>
#include <string_view>

namespace shw {

// A code span that no backtick inside can end.
std::string code_span(std::string_view text);
std::string code_block(const std::string& text);
// Prose that may quote names: letters that Markdown or HTML would read are escaped.
std::string prose(std::string_view text);
// In a table, where a bar would end the cell even inside a code span.
std::string table_cell(std::string text);
// What is opened by a click, as GitHub shows it; the summary is no name of a file.
std::string fold(const std::string& summary, const std::string& body);

}  // namespace shw
