// Numbers and lists formatted for people, used by findings and reports.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace shw {

std::string human_bytes(std::uint64_t bytes);  // "3.02 GB" (decimal, as disks are sold), "512 B"
std::string human_count(std::uint64_t count);  // "1,142"
std::string human_seconds(double seconds);     // "40 ms", "3.2 s", "12 min", "13 h 20 min"
std::string plural(std::uint64_t count, std::string_view noun);  // "1 tensor", "3 tensors"
// "a", "a and b", "a, b and c", "a, b and 7 more": at most `shown` names.
std::string short_list_text(std::span<const std::string> names, std::size_t shown = 3);
// True if `text` contains one of `words`.
bool contains_any(std::string_view text, std::span<const std::string_view> words);
// Removes leading digits from `text` and returns their value; nullopt if none or too large.
std::optional<std::uint32_t> consume_number(std::string_view& text);

}  // namespace shw
