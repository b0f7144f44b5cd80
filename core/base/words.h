// Numbers and lists as people read them, for causes, remedies and reports alike.
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
std::string some_of(std::span<const std::string> names, std::size_t shown = 3);
// The digits that a text begins with, taken off it; nothing where there are none, or too many.
std::optional<std::uint32_t> take_number(std::string_view& text);

}  // namespace shw
