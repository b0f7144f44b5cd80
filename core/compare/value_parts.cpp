#include "core/compare/value_parts.h"

#include <algorithm>

#include "core/tiles/blocks.h"

namespace shw {
namespace {

// Per tile; bounds invented shapes too.
constexpr std::uint64_t kMaxParts = 4096;
// Small tiles per thread.
constexpr std::uint32_t kPartPairs = 256;

}  // namespace

void add_value_parts(const BothCheckpoints& both, const TilePairs& pairs, std::uint32_t tensor,
                     std::uint32_t first, std::uint32_t last, std::int64_t most,
                     const std::function<bool(const TilePair&)>& is_in_order,
                     std::vector<ValuePart>& parts) {
  bool may_join = false;
  for (std::uint32_t i = first; i < last; ++i) {
    const Box box = box_of(both, pairs, pairs.pairs[i]);
    auto elements = static_cast<std::uint64_t>(volume(box.sizes).value_or(0));
    if (elements <= static_cast<std::uint64_t>(most)) {
      // Errors within one checkpoint are reported for that one, so its pairs are separate.
      bool joins = may_join && pairs.pairs[i].of == pairs.pairs[i - 1].of &&
                   parts.back().elements + elements <= static_cast<std::uint64_t>(most) &&
                   i - parts.back().first < kPartPairs;
      if (!joins) parts.push_back({tensor, i, i, 0, 1, 0});
      parts.back().last = i + 1;
      parts.back().elements += elements;
      may_join = true;
      continue;
    }
    may_join = false;
    Blocks blocks{box.sizes, block_sizes(box.sizes, most, {})};
    const std::uint64_t count = blocks.count();
    const std::uint64_t step = is_in_order(pairs.pairs[i]) ? count : count / kMaxParts + 1;
    for (std::uint64_t begin = 0; begin < count; begin += step) {
      ValuePart part{tensor, i, i + 1, begin, std::min(begin + step, count), 0};
      for (std::uint64_t n = begin; n < part.block_end && blocks.next(); ++n)
        part.elements += static_cast<std::uint64_t>(volume(blocks.block.sizes).value_or(0));
      parts.push_back(part);
    }
  }
}

}  // namespace shw
