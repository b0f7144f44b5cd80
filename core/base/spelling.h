// Suggestions for mistyped names.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shw {

// Number of insertions, deletions, replacements and swaps of adjacent letters that turn a into b;
// `limit` + 1 if it exceeds `limit`.
std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit);

// At most `count` known names close to `typed`, best first: names that contain it, then names that
// differ in at most a third of the letters of `typed`.
std::vector<std::string> did_you_mean(std::string_view typed,
                                      std::span<const std::string_view> known,
                                      std::size_t count = 3);

// "did you mean a, b or c?"; empty if there are no names.
std::string did_you_mean_text(const std::vector<std::string>& names);

// Shell pattern with *, ? and [abc]; * also matches dots and slashes.
bool matches_pattern(const std::string& pattern, const std::string& name);

}  // namespace shw
