#include "core/facts/names/line_table.h"

namespace shw {
namespace {

std::string_view without_trailing_comma(std::string_view line) {
  if (line.ends_with(',')) line.remove_suffix(1);
  return line;
}

}  // namespace

std::vector<std::string_view> LineTable::lines(std::string_view list) const {
  std::vector<std::string_view> lines;
  const std::string heading = "\"" + std::string(list) + "\":";
  for (std::size_t at = text_.find(heading); at != std::string_view::npos;) {
    at = text_.find('\n', at);
    if (at == std::string_view::npos || text_[++at] == ']' || text_[at] == '}') break;
    lines.push_back(without_trailing_comma(text_.substr(at, text_.find('\n', at) - at)));
  }
  return lines;
}

std::string_view LineTable::row(std::string_view key) const {
  const std::string mark = "\n\"" + std::string(key) + "\":";
  const std::size_t at = text_.find(mark);
  if (key.find_first_of("\"\n") != std::string_view::npos || at == std::string_view::npos)
    return {};
  const std::size_t begin = at + mark.size();
  return without_trailing_comma(text_.substr(begin, text_.find('\n', begin) - begin));
}

}  // namespace shw
