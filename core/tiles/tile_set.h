// The tiles of one picture of a tensor, with a lookup by position. Built once per tensor and not
// per frame.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/ids.h"
#include "core/model/checkpoint.h"
#include "core/tensor/shape.h"
#include "core/tiles/slice.h"

namespace shw {

inline constexpr std::uint32_t kNoWriter = std::numeric_limits<std::uint32_t>::max();

// In order of severity: if several tiles share a pixel, the worst is shown.
enum class TileStatus : std::uint8_t { kFine, kMoved, kBad };

class TileSet {
 public:
  explicit TileSet(ExtentsView shape) : shape_(shape.begin(), shape.end()) {}
  // Boxes that leave the shape are kept and drawn where they claim to be.
  void add(ExtentsView offsets, ExtentsView sizes, std::uint32_t writer, TileStatus status,
           ChunkId chunk);
  // Call after the last add(); prepares find().
  void seal();

  const Extents& shape() const { return shape_; }
  std::size_t ndim() const { return shape_.size(); }
  std::uint32_t size() const { return static_cast<std::uint32_t>(writer_.size()); }
  std::int64_t offset(std::uint32_t tile, std::size_t dim) const {
    return bounds_[tile * 2 * ndim() + dim];
  }
  std::int64_t extent(std::uint32_t tile, std::size_t dim) const {
    return bounds_[(tile * 2 + 1) * ndim() + dim];
  }
  ExtentsView offsets(std::uint32_t tile) const {
    return {bounds_.data() + tile * 2 * ndim(), ndim()};
  }
  ExtentsView sizes(std::uint32_t tile) const {
    return {bounds_.data() + (tile * 2 + 1) * ndim(), ndim()};
  }
  std::uint32_t writer(std::uint32_t tile) const { return writer_[tile]; }
  TileStatus status(std::uint32_t tile) const { return status_[tile]; }
  ChunkId chunk(std::uint32_t tile) const { return chunk_[tile]; }
  TileStatus worst() const { return worst_; }

  bool crosses(std::uint32_t tile, const Slice& slice) const;
  // The first tile that contains the point: by a cell table if the tiles form a grid, else by a
  // scan along the most split dim.
  std::optional<std::uint32_t> find(ExtentsView point) const;
  // Sorted distinct offsets along a dim.
  const std::vector<std::int64_t>& cuts(std::size_t dim) const { return cuts_[dim]; }

 private:
  bool holds(std::uint32_t tile, ExtentsView point) const;

  Extents shape_;
  std::vector<std::int64_t> bounds_;  // per tile: offsets, then sizes
  std::vector<std::uint32_t> writer_;
  std::vector<TileStatus> status_;
  std::vector<ChunkId> chunk_;
  TileStatus worst_ = TileStatus::kFine;

  std::vector<std::vector<std::int64_t>> cuts_;
  std::vector<std::uint32_t> cells_;  // row-major grid: index + 1 of the first tile in each cell
  std::size_t scan_dim_ = 0;
  std::vector<std::uint32_t> by_offset_;    // tiles sorted along scan_dim_
  std::vector<std::int64_t> furthest_end_;  // running maximum of the tiles' ends
};

// Tiles as recorded; kBad if a chunk leaves its tensor or its bytes are not in the file.
std::shared_ptr<const TileSet> saved_tiles(const Checkpoint& checkpoint, TensorId tensor);

}  // namespace shw
