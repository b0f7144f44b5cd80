// Whether a run of elements is another one, shifted: what a save leaves that counted offsets in a
// flat buffer with padding, and wrote the buffer without.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace shw {

// `by` so that part[i] is whole[i + by] wherever both have an element, at least kSureOverlap of
// them and not all of one value; nothing where there is no such number but 0. Both are as long.
inline constexpr std::size_t kSureOverlap = 32;
std::optional<std::int64_t> flat_shift(std::span<const std::uint16_t> part,
                                       std::span<const std::uint16_t> whole);

}  // namespace shw
