// How people mistype names.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shw {

// Insertions, deletions, replacements and swaps of neighbours that turn one into the other;
// `limit` + 1 as soon as it takes more than `limit`.
std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit);

// The known names that are nearest to what was typed, best first: those that contain it, then those
// at most a third of its letters away. At most `count`.
std::vector<std::string> did_you_mean(std::string_view typed,
                                      std::span<const std::string_view> known,
                                      std::size_t count = 3);

// "did you mean a, b or c?", or nothing.
std::string did_you_mean_text(const std::vector<std::string>& names);

// A pattern as a shell reads it: *, ?, [abc]; * takes dots and slashes too.
bool matches_pattern(const std::string& pattern, const std::string& name);

}  // namespace shw
