// Ranges of data files that no item claims: reported by leftover-data, and searched for chunks
// whose record names another item's bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/base/checked.h"
#include "core/facts/check_input.h"

namespace shw {

struct UnclaimedRange {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t size() const { return end - begin; }
};

// Smaller gaps hold no item: torch's smallest archive is larger, and writers align.
inline constexpr std::uint64_t kMinGap = 512;

// The part of an item that is inside its file.
std::optional<UnclaimedRange> range_of(const Checkpoint& checkpoint, const ItemPlace& place);

// Unclaimed ranges of at least kMinGap in referenced data files, by file index. Alignment padding
// of zeros is excluded.
std::map<std::size_t, std::vector<UnclaimedRange>> find_orphans(const CheckInput& input);

}  // namespace shw
