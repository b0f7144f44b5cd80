// What a run may take, unless somebody says otherwise.
#pragma once

#include <cstdint>

namespace shw {

// Of memory, for slabs and decoded items, in bytes.
inline constexpr std::uint64_t kDefaultMemory = std::uint64_t{1} << 30;
// Below it slabs are too small to be worth their while.
inline constexpr std::uint64_t kLeastMemory = std::uint64_t{1} << 20;

}  // namespace shw
