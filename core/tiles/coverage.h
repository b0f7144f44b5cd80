// Do the chunks of a tensor cover it exactly once? The common answer, yes, is proved in one pass
// over the chunks; what overlaps and what is missing is worked out only where the answer is no.
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
  kExact,      // every element lies in exactly one chunk
  kInexact,    // something is missing, lies twice or lies outside
  kMalformed,  // a chunk with another number of dimensions: nothing can be said
};

// Boxes side by side: box i is [low[i * ndim + d], high[i * ndim + d]) in every dimension d.
struct FlatBoxes {
  std::size_t ndim = 0;
  std::vector<std::int64_t> low, high;
  std::vector<std::uint32_t> source;  // which chunk of the tensor it is
  std::size_t size() const { return source.size(); }
  void add(ExtentsView offsets, ExtentsView sizes, std::uint32_t from);
  Box box(std::size_t i) const;
};

struct Overlap {
  std::uint32_t first = 0, second = 0;  // chunks of the tensor, counted from 0
  Box box;                              // what both claim
};

struct TilingDefects {
  std::vector<Box> gaps;          // disjoint, merged; at most kMaxGaps
  std::int64_t missing = 0;       // elements in no chunk; saturates
  std::vector<Overlap> overlaps;  // each pair once; at most kMaxOverlaps
  bool complete = true;           // false: too tangled or too many, there is more of the same
};
inline constexpr std::size_t kMaxGaps = 100'000;
inline constexpr std::size_t kMaxOverlaps = 4'096;

// True if the boxes are the cells of a grid (each dimension cut at the same places everywhere) and
// fill `shape`. False says nothing.
bool is_full_grid(ExtentsView shape, const FlatBoxes& boxes);
// All boxes lie inside `shape` and are not empty.
TilingDefects find_defects(ExtentsView shape, const FlatBoxes& boxes);

struct TensorTiling {
  Tiling tiling = Tiling::kExact;
  TilingDefects defects;  // of kInexact
};
TensorTiling judge_tiling(const Checkpoint& checkpoint, TensorId tensor);
// One a tensor, in parallel; where it was cancelled nobody may look at them.
std::vector<TensorTiling> judge_tilings(const Checkpoint& checkpoint,
                                        const Progress* progress = nullptr);
// The chunks of a tensor, cut at its borders, without empty ones.
FlatBoxes boxes_of(const Checkpoint& checkpoint, TensorId tensor);

// Boxes that share a whole face become one; disjoint in, disjoint out.
void merge_boxes(std::vector<Box>& boxes);

}  // namespace shw
