// XXH3-128 over ranges of a file.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/base/hash.h"
#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/io/source.h"

namespace shw {

struct ByteRange {
  std::uint64_t offset = 0, length = 0;
};
// Hash of the concatenated ranges, holes included.
Result<Hash128> hash_of_ranges(const ByteSource& source, std::span<const ByteRange> ranges,
                               Progress* progress);
// Returns the hash as 32 hex digits.
Result<std::string> hash_ranges(const ByteSource& source, std::span<const ByteRange> ranges,
                                Progress* progress);

}  // namespace shw
