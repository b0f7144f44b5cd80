#include "views/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <map>

#include "core/report/listing.h"

namespace shw {
namespace {

constexpr std::string_view kEllipsis = "…";

bool starts_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0u) != 0x80u;
}

template <class... Arguments>
std::string formatted(const char* format, Arguments... arguments) {
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), format, arguments...);
  return buffer.data();
}

// Distinguishes names with equal shortened texts: each starts at the word in which the first two
// differ.
void part(const std::vector<std::string_view>& names, const std::vector<std::size_t>& which,
          std::vector<std::string>& texts, float width, const Measure& measure) {
  std::size_t shared = names[which.front()].size();
  for (std::size_t i : which) {
    std::size_t same = 0;
    while (same < std::min(shared, names[i].size()) && names[i][same] == names[which.front()][same])
      ++same;
    shared = same;
  }
  // Starts at the word in which they differ, if that fits.
  std::string_view front = names[which.front()];
  std::size_t word = shared == 0 ? 0 : front.rfind('.', shared - 1) + 1;  // npos + 1 is 0
  bool fits = std::all_of(which.begin(), which.end(), [&](std::size_t i) {
    return measure(kEllipsis) + measure(names[i].substr(word)) <= width;
  });
  std::map<std::string, std::vector<std::size_t>> again;
  for (std::size_t i : which) {
    std::size_t from = fits ? word : shared;
    while (from > 0 && from < names[i].size() && !starts_character(names[i][from])) --from;
    texts[i] = std::string(from > 0 ? kEllipsis : "") + std::string(names[i].substr(from));
    if (measure(texts[i]) > width) texts[i] = elide_end(texts[i], width, measure);
    again[texts[i]].push_back(i);
  }
  for (const auto& entry : again) {
    const std::vector<std::size_t>& same = entry.second;
    bool differ = std::any_of(same.begin(), same.end(),
                              [&](std::size_t i) { return names[i] != names[same.front()]; });
    if (differ && same.size() < which.size()) part(names, same, texts, width, measure);
  }
}

}  // namespace

std::string duration_text(double seconds) {
  if (seconds < 9.95) return formatted("%.1f s", seconds);
  if (seconds < 119.5) return formatted("%.0f s", seconds);
  if (seconds < 5970) return formatted("%.0f min", seconds / 60);
  if (seconds > 1e8) return "years";
  long minutes = static_cast<long>(seconds / 60);
  return formatted("%ld h %02ld min", minutes / 60, minutes % 60);
}

std::string without_blanks(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t") + 1 - first));
}

std::string sentence(std::string_view text) {
  std::string all(text);
  if (!all.empty() && all[0] >= 'a' && all[0] <= 'z')
    all[0] = static_cast<char>(all[0] - 'a' + 'A');
  return all;
}

std::string dtype_text(const Checkpoint& checkpoint, TensorId tensor) {
  const std::string_view stored = stored_as(checkpoint, tensor);
  return std::string(name(checkpoint.dtype(tensor))) +
         (stored.empty() ? "" : ", stored as " + std::string(stored));
}

std::string times_text(ExtentsView shape) {
  if (shape.empty()) return "scalar";
  std::string text;
  for (std::int64_t extent : shape) text += fmt::format("{}{}", text.empty() ? "" : "×", extent);
  return text;
}

namespace {

// Parses a range such as "[12808, 14385)" at the front of `text`; returns its length, 0 if there is
// none.
std::size_t parse_leading_range(std::string_view text, std::uint64_t& begin, std::uint64_t& end) {
  const auto number = [&](std::size_t at, std::uint64_t& value) -> std::size_t {
    auto [last, code] = std::from_chars(text.data() + at, text.data() + text.size(), value);
    return code == std::errc{} ? static_cast<std::size_t>(last - text.data()) : 0;
  };
  if (!text.starts_with('[')) return 0;
  std::size_t at = number(1, begin);
  if (at == 0 || text.substr(at, 2) != ", ") return 0;
  at = number(at + 2, end);
  return at != 0 && at < text.size() && text[at] == ')' && begin < end ? at + 1 : 0;
}

std::string index_range_text(std::string_view before, std::uint64_t begin, std::uint64_t end) {
  const bool is_counted = before.ends_with("rows ") || before.ends_with("row ") ||
                          before.ends_with("columns ") || before.ends_with("elements ") ||
                          before.ends_with("bytes ");
  return (is_counted ? "" : "bytes ") + human_count(begin) +
         (end - begin == 1 ? "" : " to " + human_count(end - 1));
}

}  // namespace

std::string desktop_text(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    std::uint64_t begin = 0, end = 0;
    const std::size_t range = parse_leading_range(text.substr(at), begin, end);
    const std::size_t closing = text[at] == '`' ? text.find('`', at + 1) : text.npos;
    if (range != 0) {
      out += index_range_text(out, begin, end);
      at += range;
    } else if (closing != text.npos) {
      out += '"' + std::string(text.substr(at + 1, closing - at - 1)) + '"';
      at = closing + 1;
    } else {
      out += text[at++];
    }
  }
  return out;
}

namespace {

// Moves both cuts out of a number with separators: "509,949,440" must not stand for
// "1,509,949,440". Numbers without separators, such as those of names, may be cut.
void move_cuts_out_of_number(std::string_view text, std::size_t& head, std::size_t& tail) {
  const auto is_part = [&](std::size_t at) {
    return at < text.size() && (text[at] == ',' || (text[at] >= '0' && text[at] <= '9'));
  };
  const auto is_grouped = [&](std::size_t at) {
    std::size_t begin = at, end = at;
    while (begin > 0 && is_part(begin - 1)) --begin;
    while (is_part(end)) ++end;
    const std::size_t comma = text.substr(begin, end - begin).find(',');
    return comma != text.npos && begin + comma + 1 < end;
  };
  if (head > 0 && is_part(head - 1) && is_part(head) && is_grouped(head))
    while (head > 0 && is_part(head - 1)) --head;
  if (tail > 0 && is_part(tail - 1) && is_part(tail) && is_grouped(tail))
    while (is_part(tail)) ++tail;
}

}  // namespace

std::string elide_middle(std::string_view text, float width, const Measure& measure) {
  if (measure(text) <= width) return std::string(text);
  auto shortened = [&](std::size_t kept) {
    std::size_t head = kept / 2, tail = text.size() - (kept - head);
    while (head > 0 && !starts_character(text[head])) --head;
    while (tail < text.size() && !starts_character(text[tail])) ++tail;
    move_cuts_out_of_number(text, head, tail);
    while (tail < text.size() && text[tail] == '.')
      ++tail;  // avoids "coordin….": one dot is enough
    return std::string(text.substr(0, head)) + std::string(kEllipsis) +
           std::string(text.substr(tail));
  };
  std::size_t fits = 0, too_long = text.size();
  while (fits + 1 < too_long) {
    std::size_t middle = fits + (too_long - fits) / 2;
    (measure(shortened(middle)) <= width ? fits : too_long) = middle;
  }
  return shortened(fits);
}

std::string elide_end(std::string_view text, float width, const Measure& measure) {
  if (measure(text) <= width) return std::string(text);
  auto shortened = [&](std::size_t kept) {
    while (kept > 0 && !starts_character(text[kept])) --kept;
    while (kept > 0 && (text[kept - 1] == ' ' || text[kept - 1] == '.')) --kept;
    return std::string(text.substr(0, kept)) + std::string(kEllipsis);
  };
  std::size_t fits = 0, too_long = text.size();
  while (fits + 1 < too_long) {
    std::size_t middle = fits + (too_long - fits) / 2;
    (measure(shortened(middle)) <= width ? fits : too_long) = middle;
  }
  return shortened(fits);
}

std::vector<std::string> elide_apart(const std::vector<std::string_view>& names, float width,
                                     const Measure& measure) {
  std::vector<std::string> texts;
  for (std::string_view name : names) texts.push_back(elide_middle(name, width, measure));
  // New texts may collide with others, so this is repeated.
  for (int round = 0; round < 4; ++round) {
    std::map<std::string, std::vector<std::size_t>> same;
    for (std::size_t i = 0; i < names.size(); ++i) same[texts[i]].push_back(i);
    bool clash = false;
    for (const auto& entry : same) {
      const std::vector<std::size_t>& which = entry.second;
      bool differ = std::any_of(which.begin(), which.end(),
                                [&](std::size_t i) { return names[i] != names[which.front()]; });
      if (differ) part(names, which, texts, width, measure);
      clash = clash || differ;
    }
    if (!clash) break;
  }
  return texts;
}

std::string elide_path(std::string_view text, float width, const Measure& measure) {
  if (measure(text) <= width) return std::string(text);
  for (std::size_t at = text.find_first_of("./"); at != text.npos;
       at = text.find_first_of("./", at + 1)) {
    std::string tail = std::string(kEllipsis) + std::string(text.substr(at + 1));
    if (measure(tail) > width) continue;
    // A short tail would say less than both ends of the text.
    if (measure(tail) * 5 < width * 2) break;
    return tail;
  }
  return elide_middle(text, width, measure);
}

}  // namespace shw
