#include "core/tensor/layout.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <vector>

#include "core/base/checked.h"

namespace shw {
namespace {

struct Dim {
  std::int64_t size, source, target;
};

// Drops dimensions of one element and joins neighbours that are one run on both sides.
std::vector<Dim> coalesced(ExtentsView sizes, ExtentsView source, ExtentsView target) {
  std::vector<Dim> dims;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 1) continue;
    Dim next{sizes[d], source[d], target[d]};
    if (!dims.empty() && dims.back().source == next.source * next.size &&
        dims.back().target == next.target * next.size) {
      dims.back() = {dims.back().size * next.size, next.source, next.target};
    } else {
      dims.push_back(next);
    }
  }
  return dims;
}

template <std::size_t kItem>
void copy_plane(const std::byte* source, std::byte* target, const Dim& rows, const Dim& columns) {
  // 32 x 32 elements: both sides of a transposed tile stay in the first-level cache.
  constexpr std::int64_t kTile = 32;
  constexpr auto item = static_cast<std::int64_t>(kItem);
  for (std::int64_t row = 0; row < rows.size; row += kTile) {
    for (std::int64_t column = 0; column < columns.size; column += kTile) {
      std::int64_t row_end = std::min(row + kTile, rows.size);
      std::int64_t column_end = std::min(column + kTile, columns.size);
      for (std::int64_t r = row; r < row_end; ++r) {
        for (std::int64_t c = column; c < column_end; ++c)
          std::memcpy(target + (r * rows.target + c * columns.target) * item,
                      source + (r * rows.source + c * columns.source) * item, kItem);
      }
    }
  }
}

void copy_plane(const std::byte* source, std::byte* target, const Dim& rows, const Dim& columns,
                std::size_t item_size) {
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
    // A dimension of one element is never stepped along, so its stride says nothing.
    if (sizes[d] != 1 && strides[d] != expected) return false;
    auto next = checked_mul(expected, sizes[d]);
    if (!next) return false;
    expected = *next;
  }
  return true;
}

void copy_strided(const StridedSource& source, const StridedTarget& target, ExtentsView sizes,
                  std::size_t item_size) {
  assert(storage_needed(sizes, source.strides, source.offset).value() *
             static_cast<std::int64_t>(item_size) <=
         static_cast<std::int64_t>(source.bytes.size()));
  assert(storage_needed(sizes, target.strides, target.offset).value() *
             static_cast<std::int64_t>(item_size) <=
         static_cast<std::int64_t>(target.bytes.size()));
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return;
  const auto item = static_cast<std::int64_t>(item_size);
  std::vector<Dim> dims = coalesced(sizes, source.strides, target.strides);
  const std::byte* from = source.bytes.data() + source.offset * item;
  std::byte* to = target.bytes.data() + target.offset * item;

  std::size_t run = item_size;
  Dim rows{1, 0, 0}, columns{1, 0, 0};
  bool runs = dims.empty() || (dims.back().source == 1 && dims.back().target == 1);
  if (runs) {
    if (!dims.empty()) {
      run *= static_cast<std::size_t>(dims.back().size);
      dims.pop_back();
    }
  } else {
    columns = dims.back();
    dims.pop_back();
    // The dimension along which the source is dense shares the tiles with the target's.
    auto dense = std::min_element(dims.begin(), dims.end(),
                                  [](const Dim& a, const Dim& b) { return a.source < b.source; });
    if (dense != dims.end()) {
      rows = *dense;
      dims.erase(dense);
    }
  }

  std::vector<std::int64_t> at(dims.size(), 0);
  while (true) {
    if (runs) {
      std::memcpy(to, from, run);
    } else {
      copy_plane(from, to, rows, columns, item_size);
    }
    std::size_t d = dims.size();
    while (d-- > 0) {
      from += dims[d].source * item;
      to += dims[d].target * item;
      if (++at[d] < dims[d].size) break;
      from -= dims[d].source * item * dims[d].size;
      to -= dims[d].target * item * dims[d].size;
      at[d] = 0;
    }
    if (d == static_cast<std::size_t>(-1)) return;
  }
}

}  // namespace shw
