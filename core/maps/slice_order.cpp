#include "core/maps/slice_order.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "core/base/hash.h"
#include "core/facts/reference/match.h"

namespace shw {
namespace {

// A tensor viewed as [outer, count, inner], to address a slice along a dim.
struct SlicedTensor {
  std::size_t outer = 1, count = 1, inner = 1;  // inner: in bytes

  SlicedTensor(const LoadedTensor& tensor, std::size_t dim) : inner(size_of(tensor.dtype)) {
    for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
      const auto size = static_cast<std::size_t>(tensor.shape[d]);
      (d < dim ? outer : d == dim ? count : inner) *= size;
    }
  }
  std::string slice(BytesView bytes, std::size_t i) const {
    RunningHash hash;
    for (std::size_t o = 0; o < outer; ++o) hash.add(bytes.subspan((o * count + i) * inner, inner));
    return hash.text();
  }
  bool is_equal(BytesView a, std::size_t i, BytesView b, std::size_t j) const {
    for (std::size_t o = 0; o < outer; ++o) {
      if (std::memcmp(a.data() + (o * count + i) * inner, b.data() + (o * count + j) * inner,
                      inner) != 0)
        return false;
    }
    return true;
  }
};

}  // namespace

Extents slice_order(const LoadedTensor& shaped, std::size_t dim, BytesView there,
                    BytesView expected, std::int64_t padding_from) {
  const SlicedTensor slices(shaped, dim);
  const std::size_t needed = padding_from > 0
                                 ? std::min(slices.count, static_cast<std::size_t>(padding_from))
                                 : slices.count;
  PlacesByContent<std::string, std::int64_t> free;
  Extents order(slices.count, -1);
  std::vector<bool> used(slices.count, false);
  for (std::size_t i = slices.count; i-- > 0;) {
    if (i < needed && slices.is_equal(there, i, expected, i)) {
      order[i] = static_cast<std::int64_t>(i);
      used[i] = true;
    } else {
      free.add(slices.slice(there, i), static_cast<std::int64_t>(i));
    }
  }
  for (std::size_t i = 0; i < needed; ++i) {
    if (order[i] >= 0) continue;
    const auto found = free.take(slices.slice(expected, i));
    if (!found) return {};
    order[i] = *found;
    used[static_cast<std::size_t>(order[i])] = true;
    if (!slices.is_equal(there, static_cast<std::size_t>(order[i]), expected, i)) return {};
  }
  // Slices that were not used become padding.
  std::size_t next = 0;
  for (std::size_t i = needed; i < slices.count; ++i) {
    while (used[next]) ++next;
    order[i] = static_cast<std::int64_t>(next++);
  }
  return order;
}

BlocksPermuted in_blocks(TensorId tensor, std::size_t dim, const Extents& order) {
  const std::int64_t block = mergeable_block_count(order);
  return {tensor, dim, block, order_of_merged_blocks(order, block)};
}

}  // namespace shw
