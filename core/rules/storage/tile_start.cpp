#include "core/rules/storage/tile_start.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "core/tiles/blocks.h"

namespace shw {

std::size_t distinct_values_at_start(const Checkpoint& checkpoint, ChunkId chunk, std::size_t most,
                                     ItemCursor& reader) {
  constexpr std::int64_t kLookedAt = std::int64_t{1} << 16;
  const Extents sizes = copy_of(checkpoint.sizes(chunk));
  const std::size_t width = size_of(checkpoint.dtype(checkpoint.tensor_of(chunk)));
  if (width == 0 || volume(sizes).value_or(0) <= 0) return 0;
  auto bytes = reader.read(chunk, {Extents(sizes.size(), 0), block_sizes(sizes, kLookedAt, {})});
  if (!bytes) return 0;
  const std::string_view all(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  std::set<std::string_view> numbers;
  std::string_view last;  // the previous number, which makes constant tiles fast
  for (std::size_t at = 0; at + width <= all.size() && numbers.size() < most; at += width) {
    const std::string_view number = all.substr(at, width);
    if (number == last || number.find_first_not_of('\0') == std::string_view::npos) continue;
    numbers.insert(number);
    last = number;
  }
  return numbers.size();
}

}  // namespace shw
