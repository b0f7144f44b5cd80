// Default memory limits of a run.
#pragma once

#include <cstdint>

namespace shw {

// Memory for slabs and decoded items, in bytes.
inline constexpr std::uint64_t kDefaultMemory = std::uint64_t{1} << 30;
// The least accepted limit in bytes: smaller slabs cost more than they move.
inline constexpr std::uint64_t kMinMemory = std::uint64_t{1} << 20;

}  // namespace shw
