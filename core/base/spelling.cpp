#include "core/base/spelling.h"

#include <fnmatch.h>

#include <algorithm>
#include <numeric>

namespace shw {
std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit) {
  if (a.size() > b.size()) std::swap(a, b);
  if (b.size() - a.size() > limit) return limit + 1;
  std::vector<std::size_t> before(a.size() + 1), last(a.size() + 1), row(a.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t j = 1; j <= b.size(); ++j) {
    row[0] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
      std::size_t replace = last[i - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[i] = std::min({replace, last[i] + 1, row[i - 1] + 1});
      bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[i] = std::min(row[i], before[i - 2] + 1);
    }
    if (*std::min_element(row.begin(), row.end()) > limit) return limit + 1;
    std::swap(before, last);
    std::swap(last, row);
  }
  return last.back();
}

std::vector<std::string> did_you_mean(std::string_view typed,
                                      std::span<const std::string_view> known, std::size_t count) {
  std::size_t limit = std::max<std::size_t>(1, typed.size() / 3);
  std::vector<std::pair<std::size_t, std::string_view>> near;
  for (std::string_view name : known) {
    bool contains = typed.size() >= 3 && name.find(typed) != name.npos;
    std::size_t distance = contains ? 0 : edit_distance(typed, name, limit);
    if (distance <= limit) near.emplace_back(distance, name);
  }
  std::stable_sort(near.begin(), near.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second < b.second;
  });
  std::vector<std::string> names;
  for (const auto& [distance, name] : near) {
    if (names.size() == count) break;
    names.emplace_back(name);
  }
  return names;
}

std::string did_you_mean_text(const std::vector<std::string>& names) {
  if (names.empty()) return {};
  std::string text = "did you mean ";
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text + "?";
}

bool matches_pattern(const std::string& pattern, const std::string& name) {
  return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

}  // namespace shw
