// What overlaps and what is missing, by halving: the region is cut at a border of some box into
// two, with the boxes that reach into each, until a region holds so few that all pairs can be
// looked at. Layouts that ranks write are cut without splitting a box nearly always: n log n. A
// hostile one costs kBudget box visits and is then called incomplete.
#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_set>

#include "core/base/checked.h"
#include "core/tiles/coverage.h"

namespace shw {
namespace {

constexpr std::size_t kFew = 8;              // boxes whose pairs are all looked at: 28 comparisons
constexpr std::size_t kSample = 64;          // boxes that choose the cut
constexpr std::uint64_t kBudget = 1u << 26;  // box visits: about a second, and 32 a box beyond
constexpr std::size_t kMaxDepth = 512;       // 20 halve a million boxes

struct Region {
  Extents low, high;
};

struct Cut {
  std::size_t dim = 0;
  std::int64_t at = 0;
  std::size_t split = std::numeric_limits<std::size_t>::max();  // sampled boxes cut in two
  std::size_t uneven = 0;                                       // of the sampled boxes
};

class Halving {
 public:
  Halving(const FlatBoxes& boxes, TilingDefects& out) : boxes_(boxes), out_(out) {}

  void visit(const Region& region, std::size_t first, std::size_t last, std::size_t depth = 0);
  std::vector<std::uint32_t>& arena() { return arena_; }

 private:
  std::int64_t low(std::size_t i, std::size_t d) const { return boxes_.low[i * boxes_.ndim + d]; }
  std::int64_t high(std::size_t i, std::size_t d) const { return boxes_.high[i * boxes_.ndim + d]; }
  bool covers(const Region& region, std::size_t i) const;
  bool meet(std::size_t a, std::size_t b) const;
  std::optional<Cut> choose(const Region& region, std::size_t first, std::size_t last,
                            std::size_t step);
  void settle(const Region& region, std::size_t first, std::size_t last);
  void add_overlap(std::size_t a, std::size_t b);
  void add_gap(Box box);

  const FlatBoxes& boxes_;
  TilingDefects& out_;
  std::vector<std::uint32_t> arena_;
  std::vector<std::int64_t> borders_;
  std::unordered_set<std::uint64_t> pairs_;
  std::uint64_t visits_ = 0;
};

bool Halving::covers(const Region& region, std::size_t i) const {
  for (std::size_t d = 0; d < boxes_.ndim; ++d) {
    if (low(i, d) > region.low[d] || high(i, d) < region.high[d]) return false;
  }
  return true;
}

bool Halving::meet(std::size_t a, std::size_t b) const {
  for (std::size_t d = 0; d < boxes_.ndim; ++d) {
    if (std::min(high(a, d), high(b, d)) <= std::max(low(a, d), low(b, d))) return false;
  }
  return true;
}

void Halving::add_overlap(std::size_t a, std::size_t b) {
  if (out_.overlaps.size() >= kMaxOverlaps) {
    out_.complete = false;
    return;
  }
  if (a > b) std::swap(a, b);
  if (!pairs_.insert((std::uint64_t{a} << 32) | b).second) return;
  auto common = intersect(boxes_.box(a), boxes_.box(b));
  out_.overlaps.push_back({boxes_.source[a], boxes_.source[b], std::move(*common)});
}

void Halving::add_gap(Box box) {
  std::int64_t elements = volume(box.sizes).value_or(std::numeric_limits<std::int64_t>::max());
  out_.missing =
      checked_add(out_.missing, elements).value_or(std::numeric_limits<std::int64_t>::max());
  if (out_.gaps.size() < kMaxGaps) {
    out_.gaps.push_back(std::move(box));
  } else {
    out_.complete = false;
  }
}

// All pairs, and what is left of the region.
void Halving::settle(const Region& region, std::size_t first, std::size_t last) {
  bool disjoint = true;
  for (std::size_t i = first; i < last; ++i) {
    for (std::size_t j = i + 1; j < last; ++j) {
      if (!meet(arena_[i], arena_[j])) continue;
      disjoint = false;
      add_overlap(arena_[i], arena_[j]);
    }
  }
  // Disjoint parts whose volumes add up fill the region. Modulo 2^64: a false sum would need a
  // region of that volume, and then the next lines decide.
  std::uint64_t whole_volume = 1, filled = 0;
  bool wide = false;
  for (std::size_t d = 0; d < boxes_.ndim; ++d) {
    auto extent = static_cast<std::uint64_t>(region.high[d] - region.low[d]);
    wide = wide || __builtin_mul_overflow(whole_volume, extent, &whole_volume);
  }
  for (std::size_t i = first; i < last; ++i) {
    std::uint64_t part = 1;
    for (std::size_t d = 0; d < boxes_.ndim; ++d) {
      part *= static_cast<std::uint64_t>(std::min(high(arena_[i], d), region.high[d]) -
                                         std::max(low(arena_[i], d), region.low[d]));
    }
    filled += part;
  }
  if (disjoint && !wide && filled == whole_volume) return;
  Box start{region.low, Extents(boxes_.ndim)};
  for (std::size_t d = 0; d < boxes_.ndim; ++d) start.sizes[d] = region.high[d] - region.low[d];
  std::vector<Box> rest{std::move(start)};
  for (std::size_t i = first; i < last; ++i) {
    Box taken = boxes_.box(arena_[i]);
    std::vector<Box> next;
    for (const Box& box : rest) {
      for (Box& part : subtract(box, taken)) next.push_back(std::move(part));
    }
    rest = std::move(next);
  }
  for (Box& box : rest) add_gap(std::move(box));
}

// The middle border of the dimension in which fewest boxes are cut in two; none where every box
// looked at covers the region.
std::optional<Cut> Halving::choose(const Region& region, std::size_t first, std::size_t last,
                                   std::size_t step) {
  std::optional<Cut> best;
  for (std::size_t d = 0; d < boxes_.ndim; ++d) {
    borders_.clear();
    for (std::size_t i = first; i < last; i += step) {
      for (std::int64_t border : {low(arena_[i], d), high(arena_[i], d)}) {
        if (border > region.low[d] && border < region.high[d]) borders_.push_back(border);
      }
    }
    if (borders_.empty()) continue;
    auto middle = borders_.begin() + static_cast<std::ptrdiff_t>(borders_.size() / 2);
    std::nth_element(borders_.begin(), middle, borders_.end());
    Cut cut{d, *middle, 0, 0};
    std::size_t before = 0, after = 0;
    for (std::size_t i = first; i < last; i += step) {
      bool left = low(arena_[i], d)<cut.at, right = high(arena_[i], d)> cut.at;
      cut.split += left && right ? 1 : 0;
      before += left ? 1 : 0;
      after += right ? 1 : 0;
    }
    cut.uneven = before > after ? before - after : after - before;
    bool better =
        !best || cut.split < best->split || (cut.split == best->split && cut.uneven < best->uneven);
    if (better) best = cut;
  }
  return best;
}

void Halving::visit(const Region& region, std::size_t first, std::size_t last, std::size_t depth) {
  std::size_t count = last - first;
  visits_ += count + 1;
  bool too_much = visits_ > std::max(kBudget, std::uint64_t{32} * boxes_.size());
  // The lists of all open regions lie in the arena: 64 bytes a box at most.
  if (too_much || depth > kMaxDepth || arena_.size() > 16 * boxes_.size() + 65'536) {
    out_.complete = false;
    return;
  }
  if (count <= kFew) return settle(region, first, last);
  auto cut = choose(region, first, last, count / kSample + 1);
  if (!cut) cut = choose(region, first, last, 1);
  for (std::size_t i = first; i < last; ++i) {
    if (!covers(region, arena_[i])) continue;
    // Nothing is missing here, and every other box lies on this one.
    for (std::size_t j = first; j < last; ++j) {
      if (j != i) add_overlap(arena_[i], arena_[j]);
    }
    return;
  }
  if (!cut) return;  // every box covers the region: dealt with above
  for (bool right : {false, true}) {
    Region half = region;
    (right ? half.low : half.high)[cut->dim] = cut->at;
    std::size_t start = arena_.size();
    for (std::size_t i = first; i < last; ++i) {
      std::uint32_t box = arena_[i];
      if (right ? high(box, cut->dim) > cut->at : low(box, cut->dim) < cut->at)
        arena_.push_back(box);
    }
    visit(half, start, arena_.size(), depth + 1);
    arena_.resize(start);
  }
}

}  // namespace

TilingDefects find_defects(ExtentsView shape, const FlatBoxes& boxes) {
  TilingDefects out;
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return out;
  Halving halving(boxes, out);
  auto& arena = halving.arena();
  arena.reserve(boxes.size() * 2 + 64);
  for (std::uint32_t i = 0; i < boxes.size(); ++i) arena.push_back(i);
  halving.visit(Region{Extents(shape.size(), 0), copy_of(shape)}, 0, boxes.size());
  merge_boxes(out.gaps);
  std::sort(out.overlaps.begin(), out.overlaps.end(), [](const Overlap& a, const Overlap& b) {
    return std::pair(a.first, a.second) < std::pair(b.first, b.second);
  });
  return out;
}

}  // namespace shw
