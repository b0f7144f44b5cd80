// Layout of elements in memory: a shape, a byte stride per dimension, and the byte offset of the
// first element. A copy is a pair of layouts of one shape (source and target); every repair is a
// list of such pairs with an element conversion.
//
// No containers and no dynamic memory, so that kernels can take these types as arguments.
#pragma once

#include <cstdint>

#include "core/tensor/convert.h"  // SHW_HOST_DEVICE

namespace shw {

// Maximum dimensions of a canonical pair. Boxes that need more are processed in parts
// (for_each_canonical_pair); no known checkpoint has one.
inline constexpr int kLayoutDims = 8;
// Maximum dimensions before canonicalisation: torch allows 64.
inline constexpr int kFoldDims = 64;

struct Layout {
  std::int32_t ndim = 0;
  std::int64_t shape[kLayoutDims] = {};
  std::int64_t stride[kLayoutDims] = {};  // in bytes; may be negative; 0 repeats an element
  std::int64_t offset = 0;                // in bytes
  friend constexpr bool operator==(const Layout&, const Layout&) = default;
};

SHW_HOST_DEVICE constexpr std::int64_t elements(const Layout& layout) {
  std::int64_t count = 1;
  for (int d = 0; d < layout.ndim; ++d) count *= layout.shape[d];
  return count;
}

// Byte offset of the element with this row-major index: the reference for all fast
// paths.
SHW_HOST_DEVICE constexpr std::int64_t byte_of(const Layout& layout, std::int64_t index) {
  std::int64_t at = layout.offset;
  for (int d = layout.ndim; d-- > 0;) {
    at += index % layout.shape[d] * layout.stride[d];
    index /= layout.shape[d];
  }
  return at;
}

// One dimension of a pair of layouts.
struct PairDim {
  std::int64_t size = 1, source = 0, target = 0;  // element count, and both strides in bytes
};
// A pair with up to kFoldDims dimensions.
struct PairDims {
  int ndim = 0;
  PairDim dims[kFoldDims] = {};
  std::int64_t source = 0, target = 0;  // byte offsets
};

SHW_HOST_DEVICE constexpr std::int64_t magnitude(std::int64_t value) {
  return value < 0 ? -value : value;
}

// Reverses dimensions with a negative target stride, so that the target runs forwards.
SHW_HOST_DEVICE constexpr void make_target_strides_positive(PairDims& pair) {
  for (int d = 0; d < pair.ndim; ++d) {
    PairDim& dim = pair.dims[d];
    if (dim.target >= 0) continue;
    pair.source += (dim.size - 1) * dim.source;
    pair.target += (dim.size - 1) * dim.target;
    dim.source = -dim.source;
    dim.target = -dim.target;
  }
}

SHW_HOST_DEVICE constexpr bool is_more_outer_dim(const PairDim& a, const PairDim& b) {
  if (a.target != b.target) return a.target > b.target;
  return magnitude(a.source) > magnitude(b.source);
}

// Reduces a pair to the fewest dimensions: drops dimensions of size 1, sorts by target stride
// (largest first) and merges neighbours that are contiguous on both sides. A pair without elements
// becomes one dimension of size 0.
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
  make_target_strides_positive(pair);
  for (int d = 1; d < kept; ++d) {
    PairDim moved = pair.dims[d];
    int at = d;
    for (; at > 0 && is_more_outer_dim(moved, pair.dims[at - 1]); --at)
      pair.dims[at] = pair.dims[at - 1];
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

// The innermost kLayoutDims dimensions of a canonical pair at position `index` of the outer ones
// (row-major; 0 if there are none).
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

// Calls visit(LayoutPair) once, or once per position of the outer dimensions if there are more than
// kLayoutDims.
template <class Visit>
constexpr void for_each_canonical_pair(PairDims pair, Visit visit) {
  canonicalise(pair);
  std::int64_t parts = 1;
  for (int d = 0; d < pair.ndim - kLayoutDims; ++d) parts *= pair.dims[d].size;
  for (std::int64_t part = 0; part < parts; ++part) visit(innermost(pair, part));
}

}  // namespace shw
