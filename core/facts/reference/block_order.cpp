#include "core/facts/reference/block_order.h"

#include <xxhash.h>

#include <algorithm>

#include "core/tensor/block_orders.h"

namespace shw {
namespace {

// True if the order repeats its first `period` blocks in every segment.
bool repeats(const std::vector<std::int64_t>& order, std::size_t period) {
  for (std::size_t i = 0; i < order.size(); ++i) {
    auto base = static_cast<std::int64_t>(i - i % period);
    if (order[i] - base != order[i % period]) return false;
  }
  return true;
}

// The position of block `at` of [Q; K; V] if heads are saved by group, each with queries, key and
// value.
std::int64_t position_in_grouped_qkv(std::int64_t at, std::int64_t groups, std::int64_t queries) {
  std::int64_t all_queries = groups * queries;
  if (at < all_queries) return at / queries * (queries + 2) + at % queries;
  std::int64_t group = (at - all_queries) % groups, is_value = (at - all_queries) / groups;
  return group * (queries + 2) + queries + is_value;
}

bool recognise_heads(const std::vector<std::int64_t>& order, BlockPattern& pattern) {
  auto count = static_cast<std::int64_t>(order.size());
  for (std::int64_t groups = 2; groups <= count / 3; ++groups) {
    if (count % groups != 0) continue;
    std::int64_t queries = count / groups - 2;
    bool grouped = true, stacked = true;
    for (std::int64_t at = 0; at < count && (grouped || stacked); ++at) {
      std::int64_t place = position_in_grouped_qkv(at, groups, queries);
      grouped = grouped && order[static_cast<std::size_t>(at)] == place;
      stacked = stacked && order[static_cast<std::size_t>(place)] == at;
    }
    if (!grouped && !stacked) continue;
    pattern.family = grouped ? BlockFamily::kGroupedHeads : BlockFamily::kStackedHeads;
    pattern.first = groups;
    pattern.second = queries;
    return true;
  }
  return false;
}

bool recognise_grid(const std::vector<std::int64_t>& order, bool halves_a_writer,
                    BlockPattern& pattern) {
  auto count = static_cast<std::int64_t>(order.size());
  for (std::int64_t rows = 2; rows <= count / 2; ++rows) {
    if (!is_grid_transpose(order, rows)) continue;
    pattern.first = rows;
    pattern.second = count / rows;
    bool pairs = pattern.second == 2, halves = rows == 2;
    pattern.family = pairs && halves_a_writer ? BlockFamily::kSwizzled
                     : halves                 ? BlockFamily::kInterleaved
                     : pairs                  ? BlockFamily::kHalved
                                              : BlockFamily::kAxesTransposed;
    return true;
  }
  return false;
}

}  // namespace

void merge_consecutive_blocks(BlockOrder& order) {
  const std::int64_t together = mergeable_block_count(order.order);
  order.order = order_of_merged_blocks(order.order, together);
  order.block *= together;
}

std::string content_hash(BytesView bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  return {reinterpret_cast<const char*>(canonical.digest), sizeof canonical.digest};
}

BlockPattern recognise_block_pattern(const BlockOrder& order, bool halves_a_writer) {
  BlockPattern pattern;
  std::vector<std::int64_t> part = order.order;
  for (std::size_t period = 2; period < part.size(); ++period) {
    if (part.size() % period != 0 || !repeats(part, period)) continue;
    pattern.segments = static_cast<std::int64_t>(part.size() / period);
    part.resize(period);
    break;
  }
  if (part == std::vector<std::int64_t>{1, 0}) {
    pattern.family = BlockFamily::kHalvesSwapped;
    return pattern;
  }
  if (!recognise_grid(part, halves_a_writer && pattern.segments == 1, pattern))
    recognise_heads(part, pattern);
  return pattern;
}

}  // namespace shw
