#include "core/tiles/blocks.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace shw {
namespace {

// Longer runs are not faster: a write of 64 Ki elements has at least 64 KiB.
constexpr std::int64_t kLongRun = 64 << 10;

// Extends the block along `order`, fastest first, to about `wanted` elements, never more.
void extend_block(Extents& block, ExtentsView sizes, ExtentsView order, std::int64_t wanted) {
  std::int64_t inner = 1;
  for (std::int64_t dim : order) {
    auto d = static_cast<std::size_t>(dim);
    block[d] = std::min(sizes[d], std::max(block[d], wanted / inner));
    inner *= block[d];
    if (inner >= wanted || block[d] < sizes[d]) return;
  }
}

// At least one, because an array without elements would divide by zero.
std::uint64_t step_count(std::int64_t size, std::int64_t step) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>((size + step - 1) / step, 1));
}

}  // namespace

Extents block_sizes(ExtentsView sizes, std::int64_t most, ExtentsView inner_first) {
  Extents block(sizes.size(), 1), own;
  if (volume(sizes).value_or(0) == 0) return block;
  for (std::size_t d = sizes.size(); d-- > 0;) own.push_back(static_cast<std::int64_t>(d));
  if (!inner_first.empty() && !same(inner_first, own)) {
    auto side =
        static_cast<std::int64_t>(std::sqrt(static_cast<double>(std::max<std::int64_t>(most, 1))));
    side = std::clamp<std::int64_t>(side, 1, kLongRun);
    extend_block(block, sizes, inner_first, side);
    extend_block(block, sizes, own, side);
  }
  std::int64_t held = volume(block).value_or(1);
  assert(held <= std::max<std::int64_t>(most, 1));
  for (std::size_t d = sizes.size(); d-- > 0;) {
    std::int64_t grown = std::min(sizes[d], block[d] * std::max<std::int64_t>(most / held, 1));
    held = held / block[d] * grown;
    block[d] = grown;
    if (grown < sizes[d]) break;
  }
  return block;
}

std::uint64_t Blocks::count() const {
  if (volume(sizes).value_or(0) == 0) return 0;
  std::uint64_t count = 1;
  for (std::size_t d = 0; d < sizes.size(); ++d) count *= step_count(sizes[d], step[d]);
  return count;
}

void Blocks::go_to(std::uint64_t index) {
  block.offsets.assign(sizes.size(), 0);
  for (std::size_t d = sizes.size(); d-- > 0;) {
    std::uint64_t steps = step_count(sizes[d], step[d]);
    block.offsets[d] = static_cast<std::int64_t>(index % steps) * step[d];
    index /= steps;
  }
  started = false;
}

bool Blocks::next() {
  std::size_t d = sizes.size();
  if (!started) {
    started = true;
    if (volume(sizes).value_or(0) == 0) return false;
    block.offsets.resize(sizes.size(), 0);
  } else {
    while (d-- > 0) {
      block.offsets[d] += step[d];
      if (block.offsets[d] < sizes[d]) break;
      block.offsets[d] = 0;
    }
    if (d == static_cast<std::size_t>(-1)) return false;
  }
  block.sizes.resize(sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i)
    block.sizes[i] = std::min(step[i], sizes[i] - block.offsets[i]);
  return true;
}

}  // namespace shw
