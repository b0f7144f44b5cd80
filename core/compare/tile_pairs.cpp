#include "core/compare/tile_pairs.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

namespace shw {
namespace {

// A tile, or what of it no tile before it holds.
struct OwnPart {
  ChunkId chunk{};
  Box box;
  bool is_all = true;
};

Box tile_of(const Checkpoint& checkpoint, ChunkId chunk) {
  return {copy_of(checkpoint.offsets(chunk)), copy_of(checkpoint.sizes(chunk))};
}

// What leaves the shape is damaged: it is said, and nothing is read by it.
bool is_in_shape(const Checkpoint& checkpoint, TensorId tensor, ChunkId chunk) {
  return lies_inside(checkpoint.offsets(chunk), checkpoint.sizes(chunk), checkpoint.shape(tensor));
}

std::vector<Box> without(std::vector<Box> boxes, const Box& taken) {
  std::vector<Box> rest;
  for (const Box& box : boxes) {
    for (Box& part : subtract(box, taken)) rest.push_back(std::move(part));
  }
  return rest;
}

std::vector<OwnPart> parts_of(const Checkpoint& checkpoint, TensorId tensor,
                              const TileCover& cover) {
  auto chunks = checkpoint.chunks(tensor);
  std::vector<std::vector<std::uint32_t>> before(cover.overlaps.empty() ? 0 : chunks.size());
  for (const Overlap& overlap : cover.overlaps) {
    if (is_in_shape(checkpoint, tensor, chunks[overlap.first]))
      before[overlap.second].push_back(overlap.first);
  }
  std::vector<OwnPart> parts;
  for (std::uint32_t i = 0; i < chunks.size(); ++i) {
    Box box = tile_of(checkpoint, chunks[i]);
    if (is_empty(box) || !is_in_shape(checkpoint, tensor, chunks[i])) continue;
    if (before.empty() || before[i].empty()) {
      parts.push_back({chunks[i], std::move(box), true});
      continue;
    }
    std::vector<Box> rest{std::move(box)};
    for (std::uint32_t other : before[i])
      rest = without(std::move(rest), tile_of(checkpoint, chunks[other]));
    for (Box& part : rest) parts.push_back({chunks[i], std::move(part), false});
  }
  return parts;
}

// The dim along which there are the most places where a part begins.
std::size_t most_cut(const std::vector<OwnPart>& parts) {
  std::size_t best = 0, most = 0;
  for (std::size_t d = 0; d < parts.front().box.sizes.size(); ++d) {
    std::set<std::int64_t> begins;
    for (const OwnPart& part : parts) begins.insert(part.box.offsets[d]);
    if (begins.size() <= most) continue;
    most = begins.size();
    best = d;
  }
  return best;
}

// Finds the parts that a box meets: sorted by where they begin along one dim, with the furthest
// end of all so far.
class PartFinder {
 public:
  explicit PartFinder(const std::vector<OwnPart>& parts) : parts_(parts), order_(parts.size()) {
    std::iota(order_.begin(), order_.end(), 0u);
    if (parts.empty() || parts.front().box.sizes.empty()) return;
    dim_ = most_cut(parts);
    std::sort(order_.begin(), order_.end(), [&](std::uint32_t x, std::uint32_t y) {
      return low(x) != low(y) ? low(x) < low(y) : x < y;
    });
    std::int64_t furthest = std::numeric_limits<std::int64_t>::min();
    for (std::uint32_t i : order_) {
      furthest = std::max(furthest, low(i) + parts[i].box.sizes[dim_]);
      furthest_.push_back(furthest);
    }
  }

  template <class Visit>
  void each_met(const Box& box, Visit visit) const {
    std::size_t last = order_.size();
    if (!furthest_.empty()) {
      std::int64_t end = box.offsets[dim_] + box.sizes[dim_];
      auto after = std::lower_bound(order_.begin(), order_.end(), end,
                                    [&](std::uint32_t i, std::int64_t at) { return low(i) < at; });
      last = static_cast<std::size_t>(after - order_.begin());
    }
    while (last > 0 && (furthest_.empty() || furthest_[last - 1] > box.offsets[dim_])) {
      const OwnPart& part = parts_[order_[--last]];
      if (auto common = intersect(box, part.box)) visit(part, std::move(*common));
    }
  }

 private:
  std::int64_t low(std::uint32_t i) const { return parts_[i].box.offsets[dim_]; }

  const std::vector<OwnPart>& parts_;
  std::vector<std::uint32_t> order_;
  std::vector<std::int64_t> furthest_;
  std::size_t dim_ = 0;
};

std::uint32_t add_box(TilePairs& pairs, Box box) {
  pairs.boxes.push_back(std::move(box));
  return static_cast<std::uint32_t>(pairs.boxes.size() - 1);
}

void add_own_overlaps(const Checkpoint& checkpoint, TensorId tensor, const TileCover& cover,
                      PairOf of, TilePairs& pairs) {
  auto chunks = checkpoint.chunks(tensor);
  for (const Overlap& overlap : cover.overlaps) {
    ChunkId one = chunks[overlap.first], two = chunks[overlap.second];
    if (is_in_shape(checkpoint, tensor, one) && is_in_shape(checkpoint, tensor, two))
      pairs.pairs.push_back({one, two, add_box(pairs, overlap.box), of});
  }
}

}  // namespace

void add_pairs(const BothCheckpoints& both, TensorPair tensor, const TileCover& a,
               const TileCover& b, TilePairs& pairs) {
  if (a.too_tangled || b.too_tangled) return;
  auto one = both.a.chunks(tensor.a), two = both.b.chunks(tensor.b);
  bool alike = a.exact && b.exact && one.size() == two.size();
  for (std::uint32_t i = 0; alike && i < one.size(); ++i)
    alike = same(both.a.offsets(one[i]), both.b.offsets(two[i])) &&
            same(both.a.sizes(one[i]), both.b.sizes(two[i]));
  if (alike) {
    for (std::uint32_t i = 0; i < one.size(); ++i) {
      if (volume(both.a.sizes(one[i])).value_or(0) != 0)
        pairs.pairs.push_back({one[i], two[i], kAllShared, PairOf::kBoth});
    }
    return;
  }
  std::vector<OwnPart> left = parts_of(both.a, tensor.a, a), right = parts_of(both.b, tensor.b, b);
  PartFinder finder(right);
  for (const OwnPart& part : left) {
    std::size_t begin = pairs.pairs.size();
    finder.each_met(part.box, [&](const OwnPart& met, Box common) {
      bool all = part.is_all && met.is_all;
      std::uint32_t box = all ? kAllShared : add_box(pairs, std::move(common));
      pairs.pairs.push_back({part.chunk, met.chunk, box, PairOf::kBoth});
    });
    // As they lie in B: neighbours are read one after the other.
    std::reverse(pairs.pairs.begin() + static_cast<std::ptrdiff_t>(begin), pairs.pairs.end());
  }
  add_own_overlaps(both.a, tensor.a, a, PairOf::kA, pairs);
  add_own_overlaps(both.b, tensor.b, b, PairOf::kB, pairs);
}

Box box_of(const BothCheckpoints& both, const TilePairs& pairs, const TilePair& pair) {
  if (pair.box != kAllShared) return pairs.boxes[pair.box];
  return *intersect(tile_of(both.a, pair.a), tile_of(both.b, pair.b));
}

}  // namespace shw
