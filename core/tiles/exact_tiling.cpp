#include "core/tiles/exact_tiling.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/base/checked.h"

namespace shw {
namespace {

// The sum of the boxes' indicator functions equals that of the whole if their mixed differences are
// equal: points of weight +1 or -1 at the corners of every box, summed where they coincide.
// Dimensions that every box spans drop out; in practice one to three are left.
constexpr std::size_t kMaxCutDims = 8;

struct Corners {
  std::size_t dims = 0;
  std::vector<std::int64_t> points;  // `dims` numbers per point
  std::vector<int> weights;

  void add(const Box& box, const std::vector<std::size_t>& cut, int sign) {
    for (std::size_t mask = 0; mask < (std::size_t{1} << cut.size()); ++mask) {
      int weight = sign;
      for (std::size_t i = 0; i < cut.size(); ++i) {
        bool far = (mask >> i & 1) != 0;
        points.push_back(box.offsets[cut[i]] + (far ? box.sizes[cut[i]] : 0));
        if (far) weight = -weight;
      }
      weights.push_back(weight);
    }
  }

  bool all_weights_cancel() const {
    std::vector<std::uint32_t> order(weights.size());
    std::iota(order.begin(), order.end(), 0u);
    auto point = [&](std::uint32_t i) {
      return points.begin() + static_cast<std::ptrdiff_t>(i * dims);
    };
    auto less = [&](std::uint32_t a, std::uint32_t b) {
      auto length = static_cast<std::ptrdiff_t>(dims);
      return std::lexicographical_compare(point(a), point(a) + length, point(b), point(b) + length);
    };
    std::sort(order.begin(), order.end(), less);
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i != 0 && less(order[i - 1], order[i])) {
        if (sum != 0) return false;
        sum = 0;
      }
      sum += weights[order[i]];
    }
    return sum == 0;
  }
};

std::vector<std::size_t> split_dims_of_boxes(std::span<const Box> boxes, ExtentsView shape) {
  std::vector<std::size_t> cut;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    bool full = std::all_of(boxes.begin(), boxes.end(), [&](const Box& box) {
      return box.offsets[d] == 0 && box.sizes[d] == shape[d];
    });
    if (!full) cut.push_back(d);
  }
  return cut;
}

// `sorted`: boxes ordered by begin along `cut`. True if they form adjacent slices of equal
// thickness along the first of these dimensions, each of which is split in the same way along the
// next, as a mesh does. False is not a proof of the opposite.
bool are_slices_of_slices(std::span<const Box* const> sorted, std::span<const std::size_t> cut,
                          ExtentsView shape) {
  if (cut.empty()) return sorted.size() == 1;
  const std::size_t d = cut.front();
  std::int64_t end = 0;
  while (!sorted.empty()) {
    const Box& first = *sorted.front();
    if (first.offsets[d] != end) return false;
    std::size_t in_slice = 1;
    while (in_slice < sorted.size() && sorted[in_slice]->offsets[d] == end) ++in_slice;
    for (const Box* box : sorted.first(in_slice)) {
      if (box->sizes[d] != first.sizes[d]) return false;
    }
    if (!are_slices_of_slices(sorted.first(in_slice), cut.subspan(1), shape)) return false;
    end += first.sizes[d];
    sorted = sorted.subspan(in_slice);
  }
  return end == shape[d];
}

bool is_cut_by_slices(std::span<const Box> boxes, std::span<const std::size_t> cut,
                      ExtentsView shape) {
  std::vector<const Box*> sorted;
  sorted.reserve(boxes.size());
  for (const Box& box : boxes) sorted.push_back(&box);
  auto before = [&](const Box* a, const Box* b) {
    for (std::size_t d : cut) {
      if (a->offsets[d] != b->offsets[d]) return a->offsets[d] < b->offsets[d];
    }
    return false;
  };
  if (!std::is_sorted(sorted.begin(), sorted.end(), before))
    std::sort(sorted.begin(), sorted.end(), before);
  return are_slices_of_slices(sorted, cut, shape);
}

std::vector<Box> non_empty(std::span<const Box> boxes) {
  std::vector<Box> kept;
  kept.reserve(boxes.size());
  for (const Box& box : boxes) {
    if (!is_empty(box)) kept.push_back(box);
  }
  return kept;
}

}  // namespace

std::optional<std::int64_t> total_volume(std::span<const Box> boxes) {
  std::int64_t total = 0;
  for (const Box& box : boxes) {
    auto part = volume(box.sizes);
    auto sum = part ? checked_add(total, *part) : std::nullopt;
    if (!sum) return std::nullopt;
    total = *sum;
  }
  return total;
}

bool are_disjoint(std::span<const Box> boxes) {
  std::vector<Box> sorted = non_empty(boxes);
  if (sorted.size() < 2) return true;
  std::size_t ndim = sorted.front().offsets.size();
  if (ndim == 0) return false;
  // Sweeps along the dimension with the most distinct begins, which keeps the fewest boxes open.
  std::size_t along = 0, most = 0;
  for (std::size_t d = 0; d < ndim; ++d) {
    std::vector<std::int64_t> begins;
    begins.reserve(sorted.size());
    for (const Box& box : sorted) begins.push_back(box.offsets[d]);
    std::sort(begins.begin(), begins.end());
    auto distinct =
        static_cast<std::size_t>(std::unique(begins.begin(), begins.end()) - begins.begin());
    if (distinct > most) {
      most = distinct;
      along = d;
    }
  }
  std::sort(sorted.begin(), sorted.end(),
            [along](const Box& a, const Box& b) { return a.offsets[along] < b.offsets[along]; });
  std::vector<const Box*> open;
  for (const Box& box : sorted) {
    std::erase_if(open, [&](const Box* other) {
      return other->offsets[along] + other->sizes[along] <= box.offsets[along];
    });
    for (const Box* other : open) {
      if (intersect(*other, box)) return false;
    }
    open.push_back(&box);
  }
  return true;
}

bool tiles_exactly(std::span<const Box> boxes, ExtentsView shape) {
  for (const Box& box : boxes) {
    if (!is_inside(box.offsets, box.sizes, shape)) return false;
  }
  std::vector<Box> without_empty;
  std::span<const Box> kept = boxes;
  if (std::any_of(boxes.begin(), boxes.end(), [](const Box& box) { return is_empty(box); })) {
    without_empty = non_empty(boxes);
    kept = without_empty;
  }
  Box all = whole(shape);
  if (is_empty(all)) return kept.empty();
  // A cheap test that also bounds the number of overlaps before corners are computed.
  if (total_volume(kept) != volume(shape)) return false;
  std::vector<std::size_t> cut = split_dims_of_boxes(kept, shape);
  if (is_cut_by_slices(kept, cut, shape)) return true;
  if (cut.size() > kMaxCutDims) return are_disjoint(kept);
  Corners corners;
  corners.dims = cut.size();
  corners.points.reserve((kept.size() + 1) * (std::size_t{1} << cut.size()) * cut.size());
  for (const Box& box : kept) corners.add(box, cut, 1);
  corners.add(all, cut, -1);
  return corners.all_weights_cancel();
}

std::optional<std::vector<Box>> complement(std::span<const Box> boxes, ExtentsView shape,
                                           std::size_t limit) {
  std::vector<Box> rest;
  if (!is_empty(whole(shape))) rest.push_back(whole(shape));
  for (const Box& box : boxes) {
    if (is_empty(box)) continue;
    std::vector<Box> next;
    next.reserve(rest.size());
    for (const Box& part : rest) {
      if (!intersect(part, box)) {
        next.push_back(part);
        continue;
      }
      for (Box& left : subtract(part, box)) next.push_back(std::move(left));
    }
    if (next.size() > limit) return std::nullopt;
    rest = std::move(next);
  }
  return rest;
}

}  // namespace shw
