#include "core/report/markdown_words.h"

#include <algorithm>

#include "core/report/text_words.h"

namespace shw {
namespace {

std::size_t longest_run(std::string_view text, char wanted) {
  std::size_t longest = 0, run = 0;
  for (char c : text) {
    run = c == wanted ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest;
}

}  // namespace

std::string code_span(std::string_view text) {
  std::string safe = printable(text);
  std::string fence(longest_run(safe, '`') + 1, '`');
  bool pad = safe.empty() || safe.front() == '`' || safe.back() == '`';
  return fence + (pad ? " " : "") + safe + (pad ? " " : "") + fence;
}

std::string code_block(const std::string& text) {
  std::string fence(std::max<std::size_t>(3, longest_run(text, '`') + 1), '`');
  return fence + "\n" + text + (text.ends_with('\n') ? "" : "\n") + fence + "\n";
}

std::string prose(std::string_view text) {
  std::string safe;
  for (char c : printable(text)) {
    if (std::string_view("\\`*_{}[]<>#|!~&").find(c) != std::string_view::npos) safe += '\\';
    safe += c;
    if (c == '@') safe += "<!-- -->";  // otherwise GitHub would notify the user of that name
  }
  return safe;
}

std::string table_cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) {
    if (at == 0 || text[at - 1] != '\\') text.insert(at, "\\");
  }
  return text;
}

// Without empty lines Markdown inside is not rendered.
std::string fold(const std::string& summary, const std::string& body) {
  return "<details><summary>" + summary + "</summary>\n\n" + body + "\n</details>\n\n";
}

}  // namespace shw
