#include "core/formats/output_tiles.h"

#include <algorithm>
#include <cassert>

namespace shw {

bool OutputTiles::has_sizes(std::uint32_t at, const Extents& sizes) const {
  return static_cast<std::size_t>(numbers_[at]) == sizes.size() &&
         std::equal(sizes.begin(), sizes.end(), numbers_.begin() + at + 1);
}

void OutputTiles::push_back(const OutputTile& tile) {
  assert(tile.box.offsets.size() == tile.box.sizes.size());
  // Ids must fit in 32 bits.
  assert(!tile.kept || static_cast<std::uint32_t>(*tile.kept) != kNone);
  Row row;
  if (!rows_.empty() && has_sizes(rows_.back().sizes, tile.box.sizes)) {
    row.sizes = rows_.back().sizes;
  } else {
    row.sizes = static_cast<std::uint32_t>(numbers_.size());
    numbers_.push_back(static_cast<std::int64_t>(tile.box.sizes.size()));
    numbers_.insert(numbers_.end(), tile.box.sizes.begin(), tile.box.sizes.end());
  }
  row.offsets = static_cast<std::uint32_t>(numbers_.size());
  numbers_.insert(numbers_.end(), tile.box.offsets.begin(), tile.box.offsets.end());
  row.writer = tile.writer;
  row.kept = tile.kept ? static_cast<std::uint32_t>(*tile.kept) : kNone;
  if (tile.more != nullptr) more_.emplace_back(static_cast<std::uint32_t>(rows_.size()), tile.more);
  rows_.push_back(row);
}

void OutputTiles::shrink_to_fit() {
  rows_.shrink_to_fit();
  numbers_.shrink_to_fit();
  more_.shrink_to_fit();
}

Box OutputTiles::box(std::size_t tile) const {
  const Row& row = rows_[tile];
  const std::int64_t* sizes = numbers_.data() + row.sizes + 1;
  const std::int64_t* offsets = numbers_.data() + row.offsets;
  const auto ndim = numbers_[row.sizes];
  return {Extents(offsets, offsets + ndim), Extents(sizes, sizes + ndim)};
}

OutputTile OutputTiles::operator[](std::size_t tile) const {
  const Row& row = rows_[tile];
  OutputTile made{box(tile), row.writer};
  if (row.kept != kNone) made.kept = ChunkId{row.kept};
  auto more =
      std::lower_bound(more_.begin(), more_.end(), tile,
                       [](const auto& one, std::size_t wanted) { return one.first < wanted; });
  if (more != more_.end() && more->first == tile) made.more = more->second;
  return made;
}

}  // namespace shw
