// Checks that the chunks of a tensor cover it exactly once. The common case is proved in one pass
// over the chunks; overlaps and gaps are computed only if that fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/progress.h"
#include "core/model/checkpoint.h"
#include "core/tensor/shape.h"

namespace shw {

enum class Tiling : std::uint8_t {
  kExact,      // every element is in exactly one chunk
  kInexact,    // there are gaps, overlaps or chunks outside
  kMalformed,  // a chunk of another rank: coverage is undefined
};

// Boxes in flat arrays: box i is [low[i * ndim + d], high[i * ndim + d]) in dimension d.
struct FlatBoxes {
  std::size_t ndim = 0;
  std::vector<std::int64_t> low, high;
  std::vector<std::uint32_t> source;  // index of the chunk in its tensor
  std::size_t size() const { return source.size(); }
  void add(ExtentsView offsets, ExtentsView sizes, std::uint32_t from);
  Box box(std::size_t i) const;
};

struct Overlap {
  std::uint32_t first = 0, second = 0;  // chunk indices in the tensor
  Box box;                              // the elements in both
};

struct TilingDefects {
  std::vector<Box> gaps;          // disjoint, merged; at most kMaxGaps
  std::int64_t missing = 0;       // number of elements in no chunk; saturates
  std::vector<Overlap> overlaps;  // each pair once; at most kMaxOverlaps
  bool complete = true;           // false: the lists are truncated
};
inline constexpr std::size_t kMaxGaps = 100'000;
inline constexpr std::size_t kMaxOverlaps = 4'096;

// True if the boxes are the cells of a grid that fills `shape`. False is not a proof of the
// opposite.
bool is_full_grid(ExtentsView shape, const FlatBoxes& boxes);
// Requires that all boxes are non-empty and inside `shape`.
TilingDefects find_defects(ExtentsView shape, const FlatBoxes& boxes);

struct TensorTiling {
  Tiling tiling = Tiling::kExact;
  TilingDefects defects;  // for kInexact
};
TensorTiling compute_tiling(const Checkpoint& checkpoint, TensorId tensor);
// One entry per tensor, computed in parallel; incomplete if the job was cancelled.
std::vector<TensorTiling> compute_tilings(const Checkpoint& checkpoint,
                                          const Progress* progress = nullptr);
// The non-empty chunks of a tensor, clipped to its shape.
FlatBoxes boxes_of(const Checkpoint& checkpoint, TensorId tensor);

// Merges boxes that share a whole face; boxes must be disjoint and stay so.
void merge_boxes(std::vector<Box>& boxes);

}  // namespace shw
