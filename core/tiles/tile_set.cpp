#include "core/tiles/tile_set.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "core/base/checked.h"

namespace shw {
namespace {

// offset + size of numbers from a file; saturates.
std::int64_t end_of(std::int64_t offset, std::int64_t size) {
  return checked_add(offset, size).value_or(std::numeric_limits<std::int64_t>::max());
}

// Maximum number of cells per tile; a sparser table means that the tiles are not a grid.
constexpr std::size_t kCellsPerTile = 4;

}  // namespace

void TileSet::add(ExtentsView offsets, ExtentsView sizes, std::uint32_t writer, TileStatus status,
                  ChunkId chunk) {
  // A chunk of another rank than its tensor (rule chunk-rank) is drawn with the dims that it has.
  for (std::size_t d = 0; d < ndim(); ++d) bounds_.push_back(d < offsets.size() ? offsets[d] : 0);
  for (std::size_t d = 0; d < ndim(); ++d) bounds_.push_back(d < sizes.size() ? sizes[d] : 1);
  writer_.push_back(writer);
  status_.push_back(status);
  chunk_.push_back(chunk);
  worst_ = std::max(worst_, status);
}

void TileSet::seal() {
  cuts_.assign(ndim(), {});
  std::size_t cells = 1;
  bool grid = true;
  for (std::size_t d = 0; d < ndim(); ++d) {
    auto& cuts = cuts_[d];
    cuts.reserve(size());
    for (std::uint32_t tile = 0; tile < size(); ++tile) cuts.push_back(offset(tile, d));
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    if (cuts.size() > cuts_[scan_dim_].size()) scan_dim_ = d;
    auto product = checked_mul(cells, std::max<std::size_t>(cuts.size(), 1));
    grid = grid && product && *product <= kCellsPerTile * size() + 64;
    cells = product.value_or(0);
  }
  if (grid) {
    cells_.assign(cells, 0);
    for (std::uint32_t tile = size(); tile-- > 0;) {
      std::size_t cell = 0;
      for (std::size_t d = 0; d < ndim(); ++d) {
        auto cut = std::lower_bound(cuts_[d].begin(), cuts_[d].end(), offset(tile, d));
        cell = cell * cuts_[d].size() + static_cast<std::size_t>(cut - cuts_[d].begin());
        // A tile that crosses the next split would be in several cells: not a grid.
        grid = grid && (std::next(cut) == cuts_[d].end() ||
                        end_of(offset(tile, d), extent(tile, d)) <= *std::next(cut));
      }
      cells_[cell] = tile + 1;
    }
    if (!grid) cells_.clear();
  }
  by_offset_.resize(size());
  std::iota(by_offset_.begin(), by_offset_.end(), 0u);
  if (ndim() == 0) return;
  std::stable_sort(by_offset_.begin(), by_offset_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return offset(a, scan_dim_) < offset(b, scan_dim_);
  });
  std::int64_t furthest = std::numeric_limits<std::int64_t>::min();
  for (std::uint32_t tile : by_offset_) {
    furthest = std::max(furthest, end_of(offset(tile, scan_dim_), extent(tile, scan_dim_)));
    furthest_end_.push_back(furthest);
  }
}

bool TileSet::crosses(std::uint32_t tile, const Slice& slice) const {
  for (std::size_t d = 0; d < ndim(); ++d) {
    if (slice.shows(d)) continue;
    std::int64_t at = d < slice.at.size() ? slice.at[d] : 0;
    if (at < offset(tile, d) || at >= end_of(offset(tile, d), extent(tile, d))) return false;
  }
  return true;
}

bool TileSet::holds(std::uint32_t tile, ExtentsView point) const {
  for (std::size_t d = 0; d < ndim(); ++d) {
    if (point[d] < offset(tile, d) || point[d] >= end_of(offset(tile, d), extent(tile, d)))
      return false;
  }
  return true;
}

std::optional<std::uint32_t> TileSet::find(ExtentsView point) const {
  assert(point.size() == ndim());
  if (size() == 0) return std::nullopt;
  if (ndim() == 0) return 0;
  if (!cells_.empty()) {
    std::size_t cell = 0;
    for (std::size_t d = 0; d < ndim(); ++d) {
      auto after = std::upper_bound(cuts_[d].begin(), cuts_[d].end(), point[d]);
      if (after == cuts_[d].begin()) return std::nullopt;
      cell = cell * cuts_[d].size() + static_cast<std::size_t>(after - cuts_[d].begin() - 1);
    }
    if (std::uint32_t tile = cells_[cell]; tile != 0 && holds(tile - 1, point)) return tile - 1;
  }
  // Scans backwards from the last tile that begins at or before the point.
  auto after = std::upper_bound(
      by_offset_.begin(), by_offset_.end(), point[scan_dim_],
      [&](std::int64_t value, std::uint32_t tile) { return value < offset(tile, scan_dim_); });
  std::optional<std::uint32_t> found;
  std::size_t looked = 0;
  for (auto at = static_cast<std::size_t>(after - by_offset_.begin()); at-- > 0;) {
    // Limits the time per frame: 20,000 overlapping tiles are damage, and any of them will do.
    if (furthest_end_[at] <= point[scan_dim_] || ++looked > 20'000) break;
    if (holds(by_offset_[at], point))
      found = std::min(found.value_or(by_offset_[at]), by_offset_[at]);
  }
  return found;
}

namespace {

bool are_bytes_present(const Checkpoint& checkpoint, ChunkId chunk) {
  auto item = checkpoint.item(chunk);
  if (!item) return false;
  const FileRow& file = checkpoint.file(item->file);
  if (checkpoint.directory() == nullptr) return true;  // no files to check
  if (file.kind != EntryKind::kFile || !file.safe || item->offset < 0 || item->length < 0)
    return false;
  auto offset = static_cast<std::uint64_t>(item->offset);
  return offset <= file.size && static_cast<std::uint64_t>(item->length) <= file.size - offset;
}

}  // namespace

std::shared_ptr<const TileSet> saved_tiles(const Checkpoint& checkpoint, TensorId tensor) {
  auto tiles = std::make_shared<TileSet>(checkpoint.shape(tensor));
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    bool inside =
        is_inside(checkpoint.offsets(chunk), checkpoint.sizes(chunk), checkpoint.shape(tensor));
    TileStatus status =
        inside && are_bytes_present(checkpoint, chunk) ? TileStatus::kFine : TileStatus::kBad;
    tiles->add(checkpoint.offsets(chunk), checkpoint.sizes(chunk),
               checkpoint.writer(chunk).value_or(kNoWriter), status, chunk);
  }
  tiles->seal();
  return tiles;
}

}  // namespace shw
