#include "core/facts/block_order.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_map>

namespace shw {
namespace {

using SliceHashes = std::vector<std::uint64_t>;

// A tensor as slices along one dimension: slice i is `outer` runs of `run` bytes.
struct Slices {
  std::size_t outer = 1, count = 1, run = 1;

  const std::byte* at(BytesView bytes, std::size_t o, std::size_t slice) const {
    return bytes.data() + (o * count + slice) * run;
  }
};

Slices slices_along(ExtentsView shape, std::size_t dim, std::size_t element) {
  Slices slices{1, static_cast<std::size_t>(shape[dim]), element};
  for (std::size_t d = 0; d < dim; ++d) slices.outer *= static_cast<std::size_t>(shape[d]);
  for (std::size_t d = dim + 1; d < shape.size(); ++d)
    slices.run *= static_cast<std::size_t>(shape[d]);
  return slices;
}

SliceHashes hash_slices(BytesView bytes, const Slices& slices) {
  SliceHashes hashes(slices.count, 0);
  for (std::size_t o = 0; o < slices.outer; ++o) {
    for (std::size_t i = 0; i < slices.count; ++i)
      hashes[i] = XXH3_64bits_withSeed(slices.at(bytes, o, i), slices.run, hashes[i]);
  }
  return hashes;
}

SliceHashes hash_blocks(const SliceHashes& slices, std::size_t block) {
  SliceHashes hashes;
  for (std::size_t i = 0; i < slices.size(); i += block)
    hashes.push_back(XXH3_64bits(slices.data() + i, block * sizeof(std::uint64_t)));
  return hashes;
}

bool same_multiset(SliceHashes a, SliceHashes b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return a == b;
}

// Which block of the image each block of the truth is; nothing where two are equal or one is not
// there.
std::optional<std::vector<std::int64_t>> unique_order(const SliceHashes& image,
                                                      const SliceHashes& truth) {
  std::unordered_map<std::uint64_t, std::int64_t> place;
  for (std::size_t i = 0; i < image.size(); ++i) {
    if (!place.emplace(image[i], static_cast<std::int64_t>(i)).second) return std::nullopt;
  }
  std::vector<std::int64_t> order;
  std::vector<bool> used(image.size(), false);
  for (std::uint64_t hash : truth) {
    auto found = place.find(hash);
    if (found == place.end() || used[static_cast<std::size_t>(found->second)]) return std::nullopt;
    used[static_cast<std::size_t>(found->second)] = true;
    order.push_back(found->second);
  }
  return order;
}

// Hashes only propose: every byte is compared.
bool holds(const BlockOrder& order, BytesView image, BytesView truth, const Slices& slices) {
  for (std::size_t i = 0; i < slices.count; ++i) {
    auto slice = static_cast<std::int64_t>(i);
    auto from = static_cast<std::size_t>(
        order.order[static_cast<std::size_t>(slice / order.block)] * order.block +
        slice % order.block);
    for (std::size_t o = 0; o < slices.outer; ++o) {
      if (std::memcmp(slices.at(truth, o, i), slices.at(image, o, from), slices.run) != 0)
        return false;
    }
  }
  return true;
}

bool stays_together(const std::vector<std::int64_t>& order, std::size_t together) {
  auto size = static_cast<std::int64_t>(together);
  for (std::size_t i = 0; i < order.size(); i += together) {
    if (order[i] % size != 0) return false;
    for (std::size_t j = 1; j < together; ++j) {
      if (order[i + j] != order[i] + static_cast<std::int64_t>(j)) return false;
    }
  }
  return true;
}

BlockComparison compare_along(BytesView image, BytesView truth, ExtentsView shape, std::size_t dim,
                              std::size_t element) {
  Slices slices = slices_along(shape, dim, element);
  SliceHashes of_image = hash_slices(image, slices), of_truth = hash_slices(truth, slices);
  if (!same_multiset(of_image, of_truth)) return {BlockAnswer::kDiffers, {}};
  for (std::size_t block = 1; block < slices.count; ++block) {
    if (slices.count % block != 0) continue;
    auto found = unique_order(hash_blocks(of_image, block), hash_blocks(of_truth, block));
    if (!found) continue;
    BlockOrder order{dim, static_cast<std::int64_t>(block), std::move(*found)};
    if (!holds(order, image, truth, slices)) return {BlockAnswer::kDiffers, {}};
    coarsen(order);
    return {BlockAnswer::kPermuted, std::move(order)};
  }
  return {BlockAnswer::kAmbiguous, {}};
}

// The first `period` blocks of an order that repeats itself in every segment of that length.
bool repeats(const std::vector<std::int64_t>& order, std::size_t period) {
  for (std::size_t i = 0; i < order.size(); ++i) {
    auto base = static_cast<std::int64_t>(i - i % period);
    if (order[i] - base != order[i % period]) return false;
  }
  return true;
}

// True block (i, j) of a grid of `rows` x `columns` lies at (j, i).
bool is_grid_transpose(const std::vector<std::int64_t>& order, std::int64_t rows) {
  auto count = static_cast<std::int64_t>(order.size());
  std::int64_t columns = count / rows;
  for (std::int64_t at = 0; at < count; ++at) {
    if (order[static_cast<std::size_t>(at)] != at % columns * rows + at / columns) return false;
  }
  return true;
}

// Blocks of one head: where block `at` of [Q; K; V] stands when the heads lie group by group, each
// with its queries, its key and its value.
std::int64_t place_in_groups(std::int64_t at, std::int64_t groups, std::int64_t queries) {
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
      std::int64_t place = place_in_groups(at, groups, queries);
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
    if (count % rows != 0 || !is_grid_transpose(order, rows)) continue;
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

// In squares of 32 x 32, of which both sides stay in the cache.
template <std::size_t kElement>
bool is_crossed(const std::byte* image, const std::byte* truth, std::size_t rows,
                std::size_t columns) {
  constexpr std::size_t kTile = 32;
  for (std::size_t row = 0; row < rows; row += kTile) {
    for (std::size_t column = 0; column < columns; column += kTile) {
      for (std::size_t i = row; i < std::min(row + kTile, rows); ++i) {
        for (std::size_t j = column; j < std::min(column + kTile, columns); ++j) {
          if (std::memcmp(truth + (i * columns + j) * kElement, image + (j * rows + i) * kElement,
                          kElement) != 0)
            return false;
        }
      }
    }
  }
  return true;
}

}  // namespace

void coarsen(BlockOrder& order) {
  std::size_t count = order.order.size();
  for (std::size_t together = count / 2; together >= 2; --together) {
    if (count % together != 0 || !stays_together(order.order, together)) continue;
    std::vector<std::int64_t> coarse;
    for (std::size_t i = 0; i < count; i += together)
      coarse.push_back(order.order[i] / static_cast<std::int64_t>(together));
    order.order = std::move(coarse);
    order.block *= static_cast<std::int64_t>(together);
    return;
  }
}

BlockComparison compare_blocks(BytesView image, BytesView truth, ExtentsView shape,
                               std::size_t element) {
  if (image.size() != truth.size()) return {BlockAnswer::kDiffers, {}};
  if (image.empty() || std::memcmp(image.data(), truth.data(), image.size()) == 0) return {};
  BlockComparison best{BlockAnswer::kDiffers, {}};
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    if (shape[dim] < 2) continue;
    BlockComparison found = compare_along(image, truth, shape, dim, element);
    if (found.answer == BlockAnswer::kPermuted) return found;
    if (found.answer == BlockAnswer::kAmbiguous) best = found;
  }
  return best;
}

std::string content_hash(BytesView bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  return {reinterpret_cast<const char*>(canonical.digest), sizeof canonical.digest};
}

bool is_transpose(BytesView image, BytesView truth, ExtentsView truth_shape, std::size_t element) {
  if (truth_shape.size() < 2 || image.size() != truth.size()) return false;
  auto rows = static_cast<std::size_t>(truth_shape[truth_shape.size() - 2]);
  auto columns = static_cast<std::size_t>(truth_shape[truth_shape.size() - 1]);
  auto* one = element == 1    ? &is_crossed<1>
              : element == 2  ? &is_crossed<2>
              : element == 4  ? &is_crossed<4>
              : element == 8  ? &is_crossed<8>
              : element == 16 ? &is_crossed<16>
                              : nullptr;
  std::size_t matrix = rows * columns * element;
  if (one == nullptr || matrix == 0 || truth.size() % matrix != 0) return false;
  for (std::size_t base = 0; base < truth.size(); base += matrix) {
    if (!one(image.data() + base, truth.data() + base, rows, columns)) return false;
  }
  return true;
}

BlockPattern recognise(const BlockOrder& order, bool halves_a_writer) {
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
