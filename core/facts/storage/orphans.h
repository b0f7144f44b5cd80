// Ranges of data files that no item claims: what leftover-data reports, and where the bytes of a
// tile may be whose record names another one's.
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

// Less than this holds no item: the smallest archive of torch takes more, and writers align.
inline constexpr std::uint64_t kLeastGap = 512;

// The part of an item that lies in its file.
std::optional<UnclaimedRange> range_of(const Checkpoint& checkpoint, const ItemPlace& place);

// The ranges of kLeastGap and more that belong to no item, of data files that records name; by
// index of the file. Not the zeros that are left free before a long item.
std::map<std::size_t, std::vector<UnclaimedRange>> find_orphans(const CheckInput& input);

}  // namespace shw
