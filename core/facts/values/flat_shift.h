// Detects that a run of elements is shifted against another: a save computed offsets in a flat
// buffer with padding but wrote the buffer without it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace shw {

// The shift `by` != 0 with part[i] == whole[i + by] wherever both exist, for at least kSureOverlap
// elements that are not all equal; nullopt if there is none. Requires equal lengths.
inline constexpr std::size_t kSureOverlap = 32;
std::optional<std::int64_t> flat_shift(std::span<const std::uint16_t> part,
                                       std::span<const std::uint16_t> whole);

}  // namespace shw
