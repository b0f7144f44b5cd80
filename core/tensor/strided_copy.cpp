#include "core/tensor/strided_copy.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "core/base/checked.h"
#include "core/tensor/transpose_plane.h"

namespace shw {
namespace {

template <std::size_t kItem>
void copy_plane(const std::byte* source, std::byte* target, const PairDim& rows,
                const PairDim& columns) {
  // 32 x 32 elements: both sides of a transposed block fit in the first-level cache.
  constexpr std::int64_t kTile = 32;
  for (std::int64_t row = 0; row < rows.size; row += kTile) {
    for (std::int64_t column = 0; column < columns.size; column += kTile) {
      std::int64_t row_end = std::min(row + kTile, rows.size);
      std::int64_t column_end = std::min(column + kTile, columns.size);
      for (std::int64_t r = row; r < row_end; ++r) {
        for (std::int64_t c = column; c < column_end; ++c)
          std::memcpy(target + r * rows.target + c * columns.target,
                      source + r * rows.source + c * columns.source, kItem);
      }
    }
  }
}

void copy_plane(const std::byte* source, std::byte* target, const PairDim& rows,
                const PairDim& columns, std::size_t item_size) {
  if (is_turned(rows, columns, item_size))
    return transpose_plane(source, target, rows, columns, item_size);
  switch (item_size) {
    case 1:
      return copy_plane<1>(source, target, rows, columns);
    case 2:
      return copy_plane<2>(source, target, rows, columns);
    case 4:
      return copy_plane<4>(source, target, rows, columns);
    case 8:
      return copy_plane<8>(source, target, rows, columns);
    default:
      assert(item_size == 16);
      return copy_plane<16>(source, target, rows, columns);
  }
}

}  // namespace

std::optional<std::int64_t> storage_needed(ExtentsView sizes, ExtentsView strides,
                                           std::int64_t offset) {
  if (sizes.size() != strides.size() || offset < 0) return std::nullopt;
  auto elements = volume(sizes);
  if (!elements) return std::nullopt;
  std::int64_t last = offset;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (strides[d] < 0) return std::nullopt;
    if (*elements == 0) continue;
    auto reach = checked_mul(sizes[d] - 1, strides[d]);
    auto sum = reach ? checked_add(last, *reach) : std::nullopt;
    if (!sum) return std::nullopt;
    last = *sum;
  }
  return *elements == 0 ? std::optional<std::int64_t>(0) : checked_add<std::int64_t>(last, 1);
}

bool is_row_major(ExtentsView sizes, ExtentsView strides) {
  if (sizes.size() != strides.size()) return false;
  std::int64_t expected = 1;
  for (std::size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] == 0) return true;
    // The stride of a dimension of size 1 is never used.
    if (sizes[d] != 1 && strides[d] != expected) return false;
    auto next = checked_mul(expected, sizes[d]);
    if (!next) return false;
    expected = *next;
  }
  return true;
}

Extents byte_strides(ExtentsView sizes, std::size_t item_size) {
  Extents strides = row_major_strides(sizes);
  for (std::int64_t& stride : strides) stride *= static_cast<std::int64_t>(item_size);
  return strides;
}

PairDims pair_of(ExtentsView sizes, ExtentsView source_strides, std::int64_t source_offset,
                 ExtentsView target_strides, std::int64_t target_offset) {
  assert(sizes.size() <= kFoldDims);
  PairDims pair;
  pair.ndim = static_cast<int>(sizes.size());
  for (std::size_t d = 0; d < sizes.size(); ++d)
    pair.dims[d] = {sizes[d], source_strides[d], target_strides[d]};
  pair.source = source_offset;
  pair.target = target_offset;
  return pair;
}

namespace {

// A pair as outer loops around a byte run or a plane of elements.
struct Loops {
  int ndim = 0;
  PairDim dims[kLayoutDims] = {};
  bool runs = false;
  std::size_t run = 0;
  PairDim rows{1, 0, 0}, columns{1, 0, 0};
};

Loops loops_of(const LayoutPair& pair, std::size_t item_size) {
  const auto item = static_cast<std::int64_t>(item_size);
  Loops loops;
  loops.ndim = pair.source.ndim;
  for (int d = 0; d < loops.ndim; ++d)
    loops.dims[d] = {pair.source.shape[d], pair.source.stride[d], pair.target.stride[d]};
  loops.run = item_size;
  PairDim last = loops.ndim == 0 ? PairDim{1, item, item} : loops.dims[loops.ndim - 1];
  loops.runs = last.source == item && last.target == item;
  if (loops.ndim > 0) --loops.ndim;
  if (loops.runs) {
    loops.run *= static_cast<std::size_t>(last.size);
    return loops;
  }
  loops.columns = last;
  // The dimension that is contiguous in the source is blocked together with the target's.
  auto dense = std::min_element(
      loops.dims, loops.dims + loops.ndim,
      [](const PairDim& a, const PairDim& b) { return magnitude(a.source) < magnitude(b.source); });
  if (dense == loops.dims + loops.ndim) return loops;
  loops.rows = *dense;
  std::copy(dense + 1, loops.dims + loops.ndim, dense);
  --loops.ndim;
  return loops;
}

}  // namespace

void copy_elements(const std::byte* source, std::byte* target, const LayoutPair& pair,
                   std::size_t item_size) {
  if (elements(pair.source) == 0) return;
  Loops loops = loops_of(pair, item_size);
  std::int64_t from = pair.source.offset, to = pair.target.offset, at[kLayoutDims] = {};
  while (true) {
    if (loops.runs) {
      std::memcpy(target + to, source + from, loops.run);
    } else {
      copy_plane(source + from, target + to, loops.rows, loops.columns, item_size);
    }
    int d = loops.ndim;
    while (d-- > 0) {
      const PairDim& dim = loops.dims[d];
      from += dim.source;
      to += dim.target;
      if (++at[d] < dim.size) break;
      from -= dim.source * dim.size;
      to -= dim.target * dim.size;
      at[d] = 0;
    }
    if (d < 0) return;
  }
}

void copy_strided(const StridedSource& source, const StridedTarget& target, ExtentsView sizes,
                  std::size_t item_size) {
  assert(storage_needed(sizes, source.strides, source.offset).value() *
             static_cast<std::int64_t>(item_size) <=
         static_cast<std::int64_t>(source.bytes.size()));
  assert(storage_needed(sizes, target.strides, target.offset).value() *
             static_cast<std::int64_t>(item_size) <=
         static_cast<std::int64_t>(target.bytes.size()));
  const auto item = static_cast<std::int64_t>(item_size);
  PairDims pair =
      pair_of(sizes, source.strides, source.offset * item, target.strides, target.offset * item);
  for (int d = 0; d < pair.ndim; ++d) {
    // The stride of a dimension of size 1 may be any number.
    PairDim& dim = pair.dims[d];
    dim = dim.size == 1 ? PairDim{} : PairDim{dim.size, dim.source * item, dim.target * item};
  }
  for_each_canonical_pair(pair, [&](const LayoutPair& part) {
    copy_elements(source.bytes.data(), target.bytes.data(), part, item_size);
  });
}

}  // namespace shw
