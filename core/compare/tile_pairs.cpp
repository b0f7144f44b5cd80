#include "core/compare/tile_pairs.h"

#include <algorithm>
#include <numeric>
#include <span>

namespace shw {
namespace {

// A tile, or the part of it that no earlier tile covers.
struct UncoveredTilePart {
  ChunkId chunk{};
  Box box;
  bool is_all = true;
};

// Tiles outside the shape are reported as damaged and not read.
bool is_in_shape(const Checkpoint& checkpoint, TensorId tensor, ChunkId chunk) {
  return is_inside(checkpoint.offsets(chunk), checkpoint.sizes(chunk), checkpoint.shape(tensor));
}

std::vector<Box> subtract_box_from_all(std::vector<Box> boxes, const Box& taken) {
  std::vector<Box> rest;
  for (const Box& box : boxes) {
    for (Box& part : subtract(box, taken)) rest.push_back(std::move(part));
  }
  return rest;
}

std::vector<UncoveredTilePart> parts_of(const Checkpoint& checkpoint, TensorId tensor,
                                        const TileCover& cover) {
  auto chunks = checkpoint.chunks(tensor);
  std::vector<std::vector<std::uint32_t>> before(cover.overlaps.empty() ? 0 : chunks.size());
  for (const Overlap& overlap : cover.overlaps) {
    if (is_in_shape(checkpoint, tensor, chunks[overlap.first]))
      before[overlap.second].push_back(overlap.first);
  }
  std::vector<UncoveredTilePart> parts;
  for (std::uint32_t i = 0; i < chunks.size(); ++i) {
    Box box = box_of(checkpoint, chunks[i]);
    if (is_empty(box) || !is_in_shape(checkpoint, tensor, chunks[i])) continue;
    if (before.empty() || before[i].empty()) {
      parts.push_back({chunks[i], std::move(box), true});
      continue;
    }
    std::vector<Box> rest{std::move(box)};
    for (std::uint32_t other : before[i])
      rest = subtract_box_from_all(std::move(rest), box_of(checkpoint, chunks[other]));
    for (Box& part : rest) parts.push_back({chunks[i], std::move(part), false});
  }
  return parts;
}

// The dim in which the starts of parts differ most.
std::size_t widest(const std::vector<UncoveredTilePart>& parts,
                   std::span<const std::uint32_t> which) {
  std::size_t best = 0;
  std::int64_t most = 0;
  for (std::size_t d = 0; d < parts.front().box.sizes.size(); ++d) {
    auto [least, greatest] =
        std::minmax_element(which.begin(), which.end(), [&](std::uint32_t x, std::uint32_t y) {
          return parts[x].box.offsets[d] < parts[y].box.offsets[d];
        });
    std::int64_t apart = parts[*greatest].box.offsets[d] - parts[*least].box.offsets[d];
    if (apart <= most) continue;
    most = apart;
    best = d;
  }
  return best;
}

// Finds the parts that intersect a box, by a tree of bounding boxes. With parts sorted along one
// dim instead, one long tile would make every search linear.
class PartFinder {
 public:
  explicit PartFinder(const std::vector<UncoveredTilePart>& parts)
      : parts_(parts), order_(parts.size()) {
    std::iota(order_.begin(), order_.end(), 0u);
    if (!parts.empty()) build(0, order_.size());
  }

  // Visits in the order of parts, so that neighbours are read consecutively.
  template <class Visit>
  void each_intersecting(const Box& box, Visit visit) {
    met_.clear();
    if (!nodes_.empty()) gather(0, box);
    std::sort(met_.begin(), met_.end());
    for (std::uint32_t i : met_) {
      if (auto common = intersect(box, parts_[i].box)) visit(parts_[i], std::move(*common));
    }
  }

 private:
  static constexpr std::size_t kFew = 8;  // searched linearly
  struct Node {
    std::size_t first = 0, last = 0, second_child = 0;  // the first follows its node; 0: a leaf
    Extents low, high;                                  // bounds of the parts [first, last)
  };

  // At most 34 levels, since each child has half of the parts.
  std::size_t build(std::size_t first, std::size_t last) {
    const std::size_t self = nodes_.size();
    nodes_.push_back(around(first, last));
    if (last - first <= kFew) return self;
    const std::size_t middle = first + (last - first) / 2;
    const std::size_t dim = widest(parts_, std::span(order_).subspan(first, last - first));
    auto at = [&](std::size_t i) { return order_.begin() + static_cast<std::ptrdiff_t>(i); };
    auto begin_of = [&](std::uint32_t i) {
      return parts_[i].box.offsets.empty() ? 0 : parts_[i].box.offsets[dim];
    };
    std::nth_element(at(first), at(middle), at(last), [&](std::uint32_t x, std::uint32_t y) {
      return begin_of(x) != begin_of(y) ? begin_of(x) < begin_of(y) : x < y;
    });
    build(first, middle);
    nodes_[self].second_child = build(middle, last);
    return self;
  }

  Node around(std::size_t first, std::size_t last) const {
    const Box& one = parts_[order_[first]].box;
    Node node{first, last, 0, one.offsets, one.offsets};
    for (std::size_t i = first; i < last; ++i) {
      const Box& box = parts_[order_[i]].box;
      for (std::size_t d = 0; d < box.offsets.size(); ++d) {
        node.low[d] = std::min(node.low[d], box.offsets[d]);
        node.high[d] = std::max(node.high[d], box.offsets[d] + box.sizes[d]);
      }
    }
    return node;
  }

  void gather(std::size_t index, const Box& box) {
    const Node& node = nodes_[index];
    for (std::size_t d = 0; d < box.offsets.size(); ++d) {
      if (box.offsets[d] >= node.high[d] || node.low[d] >= box.offsets[d] + box.sizes[d]) return;
    }
    if (node.second_child == 0) {
      met_.insert(met_.end(), order_.begin() + static_cast<std::ptrdiff_t>(node.first),
                  order_.begin() + static_cast<std::ptrdiff_t>(node.last));
      return;
    }
    gather(index + 1, box);
    gather(node.second_child, box);
  }

  const std::vector<UncoveredTilePart>& parts_;
  std::vector<std::uint32_t> order_, met_;
  std::vector<Node> nodes_;
};

std::uint32_t add_box(TilePairs& pairs, Box box) {
  pairs.boxes.push_back(std::move(box));
  return static_cast<std::uint32_t>(pairs.boxes.size() - 1);
}

void add_overlaps_within_checkpoint(const Checkpoint& checkpoint, TensorId tensor,
                                    const TileCover& cover, PairSource of, TilePairs& pairs) {
  auto chunks = checkpoint.chunks(tensor);
  for (const Overlap& overlap : cover.overlaps) {
    ChunkId one = chunks[overlap.first], two = chunks[overlap.second];
    if (is_in_shape(checkpoint, tensor, one) && is_in_shape(checkpoint, tensor, two))
      pairs.pairs.push_back({one, two, add_box(pairs, overlap.box), of});
  }
}

}  // namespace

bool add_pairs(const BothCheckpoints& both, TensorPair tensor, const TileCover& a,
               const TileCover& b, std::size_t most, TilePairs& pairs) {
  if (a.has_more_gaps || b.has_more_gaps) return true;
  auto one = both.a.chunks(tensor.a), two = both.b.chunks(tensor.b);
  bool alike = a.exact && b.exact && one.size() == two.size();
  for (std::uint32_t i = 0; alike && i < one.size(); ++i)
    alike = same(both.a.offsets(one[i]), both.b.offsets(two[i])) &&
            same(both.a.sizes(one[i]), both.b.sizes(two[i]));
  const std::size_t pairs_before = pairs.pairs.size(), boxes_before = pairs.boxes.size();
  if (alike) {
    for (std::uint32_t i = 0; i < one.size(); ++i) {
      if (volume(both.a.sizes(one[i])).value_or(0) != 0)
        pairs.pairs.push_back({one[i], two[i], kAllShared, PairSource::kBoth});
    }
    return true;
  }
  std::vector<UncoveredTilePart> left = parts_of(both.a, tensor.a, a),
                                 right = parts_of(both.b, tensor.b, b);
  PartFinder finder(right);
  for (const UncoveredTilePart& part : left) {
    finder.each_intersecting(part.box, [&](const UncoveredTilePart& met, Box common) {
      bool all = part.is_all && met.is_all;
      std::uint32_t box = all ? kAllShared : add_box(pairs, std::move(common));
      pairs.pairs.push_back({part.chunk, met.chunk, box, PairSource::kBoth});
    });
    if (pairs.pairs.size() <= most) continue;
    pairs.pairs.resize(pairs_before);
    pairs.boxes.resize(boxes_before);
    return false;
  }
  add_overlaps_within_checkpoint(both.a, tensor.a, a, PairSource::kA, pairs);
  add_overlaps_within_checkpoint(both.b, tensor.b, b, PairSource::kB, pairs);
  return true;
}

Box box_of(const BothCheckpoints& both, const TilePairs& pairs, const TilePair& pair) {
  if (pair.box != kAllShared) return pairs.boxes[pair.box];
  return *intersect(box_of(both.a, pair.a), box_of(both.b, pair.b));
}

}  // namespace shw
