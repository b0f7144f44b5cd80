#include "core/io/path_suffix.h"

#include <algorithm>
#include <string_view>

namespace shw {
namespace {

constexpr std::string_view kMark = "/@";
// The outermost suffix: results can be quantised, inputs of a computation cannot.
constexpr std::string_view kOutermost = "quantised";

bool is_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](char c) { return c == '-' || (c >= 'a' && c <= 'z'); });
}

std::vector<std::string> parted(std::string_view text) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t comma = text.find(',');
    parts.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

std::optional<ComputedSuffix> parse_suffix_after_mark(std::string_view path, std::size_t at) {
  const std::string_view end = path.substr(at + kMark.size());
  const std::size_t equals = end.find('=');
  const std::string_view asked = end.substr(0, equals);
  const std::size_t colon = asked.find(':');
  ComputedSuffix found{std::string(path.substr(0, at)), std::string(asked.substr(0, colon))};
  if (colon != std::string_view::npos) found.numbers = asked.substr(colon + 1);
  if (equals != std::string_view::npos) found.others = parted(end.substr(equals + 1));
  if (!is_word(found.word) || asked.find('/') != std::string_view::npos) return std::nullopt;
  return found;
}

}  // namespace

std::optional<ComputedSuffix> parse_computed_suffix(const std::string& path) {
  std::optional<ComputedSuffix> last;
  for (std::size_t at = path.rfind(kMark); at != std::string::npos && at > 0;
       at = path.rfind(kMark, at - 1)) {
    auto found = parse_suffix_after_mark(path, at);
    if (!found) continue;
    if (!found->others.empty()) return found;
    if (found->word == kOutermost && to_path(*found) == path) return found;
    if (!last) last = std::move(found);
  }
  // A word without "=PATH" in the middle of a path is an ordinary part of that path.
  return last && to_path(*last) == path ? last : std::nullopt;
}

std::string to_path(const ComputedSuffix& end) {
  std::string path = end.before + std::string(kMark) + end.word;
  if (!end.numbers.empty()) path += ":" + end.numbers;
  for (std::size_t i = 0; i < end.others.size(); ++i) path += (i == 0 ? "=" : ",") + end.others[i];
  return path;
}

std::string path_without_suffixes(std::string path) {
  for (auto end = parse_computed_suffix(path); end; end = parse_computed_suffix(path))
    path = std::move(end->before);
  return path;
}

std::string short_path(const std::string& path) {
  auto end = parse_computed_suffix(path);
  if (!end) {
    const std::size_t last = path.find_last_not_of('/');
    if (last == std::string::npos) return path;
    return path.substr(0, last + 1).substr(path.rfind('/', last) + 1);
  }
  end->before = short_path(end->before);
  for (std::string& other : end->others) other = short_path(other);
  return to_path(*end);
}

}  // namespace shw
