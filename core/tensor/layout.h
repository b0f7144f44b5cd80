// Where elements lie in memory: a shape with a stride in bytes for every dimension, and the byte of
// the first element. Source and destination of a copy are two layouts of one shape: every repair is
// such a pair and what happens to each element on the way (spec/gpu.md B3).
//
// No standard container and no dynamic memory: a kernel takes these as they are.
#pragma once

#include <cstdint>

#include "core/tensor/convert.h"  // SHW_HOST_DEVICE

namespace shw {

// Of a canonical pair. A box of a row-major array that takes more after folding is worked off in
// parts (each_canonical_pair): nobody has saved one so far.
inline constexpr int kLayoutDims = 8;
// What can be folded: torch allows 64 dimensions.
inline constexpr int kFoldDims = 64;

struct Layout {
  std::int32_t ndim = 0;
  std::int64_t shape[kLayoutDims] = {};
  std::int64_t stride[kLayoutDims] = {};  // in bytes; may be negative, and 0 repeats an element
  std::int64_t offset = 0;                // in bytes
  friend constexpr bool operator==(const Layout&, const Layout&) = default;
};

SHW_HOST_DEVICE constexpr std::int64_t elements(const Layout& layout) {
  std::int64_t count = 1;
  for (int d = 0; d < layout.ndim; ++d) count *= layout.shape[d];
  return count;
}

// The byte where the element of that row-major index begins: what every fast path is tested
// against.
SHW_HOST_DEVICE constexpr std::int64_t byte_of(const Layout& layout, std::int64_t index) {
  std::int64_t at = layout.offset;
  for (int d = layout.ndim; d-- > 0;) {
    at += index % layout.shape[d] * layout.stride[d];
    index /= layout.shape[d];
  }
  return at;
}

// A dimension of a pair of layouts.
struct PairDim {
  std::int64_t size = 1, source = 0, target = 0;  // strides in bytes
};
// A pair before it fits into layouts.
struct PairDims {
  int ndim = 0;
  PairDim dims[kFoldDims] = {};
  std::int64_t source = 0, target = 0;  // offsets
};

SHW_HOST_DEVICE constexpr std::int64_t magnitude(std::int64_t value) {
  return value < 0 ? -value : value;
}

// A dimension that runs backwards through the target runs forwards afterwards.
SHW_HOST_DEVICE constexpr void turn_forwards(PairDims& pair) {
  for (int d = 0; d < pair.ndim; ++d) {
    PairDim& dim = pair.dims[d];
    if (dim.target >= 0) continue;
    pair.source += (dim.size - 1) * dim.source;
    pair.target += (dim.size - 1) * dim.target;
    dim.source = -dim.source;
    dim.target = -dim.target;
  }
}

SHW_HOST_DEVICE constexpr bool goes_before(const PairDim& a, const PairDim& b) {
  if (a.target != b.target) return a.target > b.target;
  return magnitude(a.source) > magnitude(b.source);
}

// The same copy in as few dimensions as it takes: dimensions of one element go, the others stand by
// their stride in the target, widest first, and neighbours that are one run on both sides are one
// dimension. A pair without elements becomes one dimension of size 0.
SHW_HOST_DEVICE constexpr void canonicalise(PairDims& pair) {
  int kept = 0;
  for (int d = 0; d < pair.ndim; ++d) {
    if (pair.dims[d].size == 0) {
      pair.ndim = 1;
      pair.dims[0] = {0, 0, 0};
      return;
    }
    if (pair.dims[d].size != 1) pair.dims[kept++] = pair.dims[d];
  }
  pair.ndim = kept;
  turn_forwards(pair);
  for (int d = 1; d < kept; ++d) {
    PairDim moved = pair.dims[d];
    int at = d;
    for (; at > 0 && goes_before(moved, pair.dims[at - 1]); --at) pair.dims[at] = pair.dims[at - 1];
    pair.dims[at] = moved;
  }
  int last = 0;
  for (int d = 1; d < kept; ++d) {
    PairDim &outer = pair.dims[last], inner = pair.dims[d];
    if (outer.source == inner.source * inner.size && outer.target == inner.target * inner.size) {
      outer = {outer.size * inner.size, inner.source, inner.target};
    } else {
      pair.dims[++last] = inner;
    }
  }
  if (kept > 0) pair.ndim = last + 1;
}

struct LayoutPair {
  Layout source, target;
};

// The innermost kLayoutDims dimensions of a canonical pair, standing at `index` of the others
// (row-major; 0 where there are none).
SHW_HOST_DEVICE constexpr LayoutPair innermost(const PairDims& pair, std::int64_t index) {
  int outer = pair.ndim > kLayoutDims ? pair.ndim - kLayoutDims : 0;
  LayoutPair out;
  out.source.offset = pair.source;
  out.target.offset = pair.target;
  for (int d = outer; d-- > 0;) {
    out.source.offset += index % pair.dims[d].size * pair.dims[d].source;
    out.target.offset += index % pair.dims[d].size * pair.dims[d].target;
    index /= pair.dims[d].size;
  }
  out.source.ndim = out.target.ndim = pair.ndim - outer;
  for (int d = outer; d < pair.ndim; ++d) {
    out.source.shape[d - outer] = out.target.shape[d - outer] = pair.dims[d].size;
    out.source.stride[d - outer] = pair.dims[d].source;
    out.target.stride[d - outer] = pair.dims[d].target;
  }
  return out;
}

// Calls visit(LayoutPair) once, or once for every index of the dimensions that a layout cannot
// hold.
template <class Visit>
constexpr void each_canonical_pair(PairDims pair, Visit visit) {
  canonicalise(pair);
  std::int64_t parts = 1;
  for (int d = 0; d < pair.ndim - kLayoutDims; ++d) parts *= pair.dims[d].size;
  for (std::int64_t part = 0; part < parts; ++part) visit(innermost(pair, part));
}

}  // namespace shw
