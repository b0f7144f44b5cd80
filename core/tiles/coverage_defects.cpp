// Finds overlaps and gaps by bisection: a region is split at a border of some box, with the boxes
// that reach into each half, until so few boxes remain that all pairs can be compared. Layouts of
// real savers are split without splitting boxes, in O(n log n). A hostile layout is cut off after
// kBudget box visits and reported as incomplete.
#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <unordered_set>

#include "core/base/checked.h"
#include "core/tiles/coverage.h"

namespace shw {
namespace {

constexpr std::size_t kFew = 8;              // boxes whose pairs are all compared: 28 comparisons
constexpr std::size_t kSample = 64;          // boxes sampled to choose a split
constexpr std::uint64_t kBudget = 1u << 26;  // box visits: about a second, and 32 per box
constexpr std::int64_t kMaxElements = std::numeric_limits<std::int64_t>::max();
// limit of partition steps when the median of about 128 box borders is sought
constexpr int kRounds = 24;
constexpr std::size_t kMaxDepth = 512;  // 20 levels halve a million boxes

struct Region {
  Extents low, high;
};

struct Cut {
  std::size_t dim = 0;
  std::int64_t at = 0;
  std::size_t split = std::numeric_limits<std::size_t>::max();  // sampled boxes that would be split
  std::size_t uneven = 0;                                       // imbalance between the halves
};

class SpaceBisector {
 public:
  SpaceBisector(const FlatBoxes& boxes, TilingDefects& out)
      : boxes_(boxes), ndim_(boxes.ndim), out_(out), corners_(2 * boxes.low.size()) {
    for (std::size_t i = 0; i < boxes.low.size(); ++i) {
      corners_[2 * i] = boxes.low[i];
      corners_[2 * i + 1] = boxes.high[i];
    }
  }

  void visit(const Region& region, std::size_t first, std::size_t last, std::size_t depth = 0);
  std::vector<std::uint32_t>& arena() { return arena_; }

 private:
  std::int64_t low(std::size_t i, std::size_t d) const { return corners_[2 * (i * ndim_ + d)]; }
  std::int64_t high(std::size_t i, std::size_t d) const {
    return corners_[2 * (i * ndim_ + d) + 1];
  }
  bool covers(const Region& region, std::size_t i) const;
  bool intersects(std::size_t a, std::size_t b) const;
  std::optional<Cut> choose(const Region& region, std::size_t first, std::size_t last,
                            std::size_t step);
  void finalize(const Region& region, std::size_t first, std::size_t last);
  void add_overlap(std::size_t a, std::size_t b);
  void add_rest(const Region& region, std::size_t first, std::size_t last);
  void add_gap(const std::int64_t* corners);
  void remove_box(const std::int64_t* from, std::size_t box);
  std::size_t cut_off(std::size_t at, std::size_t d, std::int64_t border, bool behind);
  bool is_filled(const Region& region, std::size_t first, std::size_t last) const;

  const FlatBoxes& boxes_;
  const std::size_t ndim_;
  TilingDefects& out_;
  std::vector<std::int64_t> corners_;  // low and high interleaved: one cache miss per box
  std::vector<std::uint32_t> arena_;
  std::vector<std::int64_t> borders_;
  // The uncovered parts of a region: begin, then end, in every dim. Reused between regions, of
  // which there are millions.
  std::vector<std::int64_t> rest_, next_;
  std::unordered_set<std::uint64_t> pairs_;
  std::uint64_t visits_ = 0;
};

bool SpaceBisector::covers(const Region& region, std::size_t i) const {
  for (std::size_t d = 0; d < ndim_; ++d) {
    if (low(i, d) > region.low[d] || high(i, d) < region.high[d]) return false;
  }
  return true;
}

bool SpaceBisector::intersects(std::size_t a, std::size_t b) const {
  bool apart = false;
  for (std::size_t d = 0; d < ndim_; ++d)
    apart |= std::min(high(a, d), high(b, d)) <= std::max(low(a, d), low(b, d));
  return !apart;
}

void SpaceBisector::add_overlap(std::size_t a, std::size_t b) {
  if (out_.overlaps.size() >= kMaxOverlaps) {
    out_.complete = false;
    return;
  }
  if (a > b) std::swap(a, b);
  if (!pairs_.insert((std::uint64_t{a} << 32) | b).second) return;
  auto common = intersect(boxes_.box(a), boxes_.box(b));
  out_.overlaps.push_back({boxes_.source[a], boxes_.source[b], std::move(*common)});
}

void SpaceBisector::add_gap(const std::int64_t* corners) {
  std::int64_t elements = 1;
  for (std::size_t d = 0; d < ndim_; ++d)
    elements = checked_mul(elements, corners[ndim_ + d] - corners[d]).value_or(kMaxElements);
  out_.missing = checked_add(out_.missing, elements).value_or(kMaxElements);
  if (out_.gaps.size() >= kMaxGaps) {
    out_.complete = false;
    return;
  }
  Box box{Extents(ndim_), Extents(ndim_)};
  for (std::size_t d = 0; d < ndim_; ++d) {
    box.offsets[d] = corners[d];
    box.sizes[d] = corners[ndim_ + d] - corners[d];
  }
  out_.gaps.push_back(std::move(box));
}

// Shrinks the last box of next_ (at `at`) to the part before or behind the border, appends the
// other part and returns its position.
std::size_t SpaceBisector::cut_off(std::size_t at, std::size_t d, std::int64_t border,
                                   bool behind) {
  const std::size_t then = next_.size();
  next_.resize(then + 2 * ndim_);
  std::copy_n(next_.begin() + static_cast<std::ptrdiff_t>(at), 2 * ndim_,
              next_.begin() + static_cast<std::ptrdiff_t>(then));
  next_[behind ? at + d : at + ndim_ + d] = border;
  next_[behind ? then + ndim_ + d : then + d] = border;
  return then;
}

// Appends `from` minus the box to next_, split as in `subtract` (core/tensor/shape.h).
void SpaceBisector::remove_box(const std::int64_t* from, std::size_t box) {
  const std::size_t start = next_.size();
  next_.insert(next_.end(), from, from + 2 * ndim_);
  for (std::size_t d = 0; d < ndim_; ++d) {
    if (low(box, d) >= from[ndim_ + d] || high(box, d) <= from[d]) return;
  }
  std::size_t at = start;  // start of the box that may be split further
  for (std::size_t d = 0; d < ndim_; ++d) {
    const std::int64_t begin = low(box, d), end = high(box, d);
    if (begin > next_[at + d]) at = cut_off(at, d, begin, false);
    if (end < next_[at + ndim_ + d]) at = cut_off(at, d, end, true);
  }
  next_.resize(at);
}

// Compares all pairs of a small region and computes its uncovered rest.
void SpaceBisector::finalize(const Region& region, std::size_t first, std::size_t last) {
  bool disjoint = true;
  for (std::size_t i = first; i < last; ++i) {
    // Above the reporting limit one more pair is enough.
    if (!disjoint && !out_.complete && out_.overlaps.size() >= kMaxOverlaps) break;
    for (std::size_t j = i + 1; j < last; ++j) {
      if (!intersects(arena_[i], arena_[j])) continue;
      disjoint = false;
      add_overlap(arena_[i], arena_[j]);
    }
  }
  if (!disjoint || !is_filled(region, first, last)) add_rest(region, first, last);
}

// Disjoint parts fill a region if their volumes add up to its volume. Modulo 2^64 a wrong sum would
// need a region of that volume, and such regions are never confirmed.
bool SpaceBisector::is_filled(const Region& region, std::size_t first, std::size_t last) const {
  std::uint64_t whole_volume = 1, filled = 0;
  for (std::size_t d = 0; d < ndim_; ++d) {
    auto extent = static_cast<std::uint64_t>(region.high[d] - region.low[d]);
    if (__builtin_mul_overflow(whole_volume, extent, &whole_volume)) return false;
  }
  for (std::size_t i = first; i < last; ++i) {
    std::uint64_t part = 1;
    for (std::size_t d = 0; d < ndim_; ++d) {
      part *= static_cast<std::uint64_t>(std::min(high(arena_[i], d), region.high[d]) -
                                         std::max(low(arena_[i], d), region.low[d]));
    }
    filled += part;
  }
  return filled == whole_volume;
}

void SpaceBisector::add_rest(const Region& region, std::size_t first, std::size_t last) {
  if (ndim_ == 0) {  // a scalar: any box covers it
    if (first == last) add_gap(nullptr);
    return;
  }
  const std::size_t width = 2 * ndim_;
  rest_.assign(region.low.begin(), region.low.end());
  rest_.insert(rest_.end(), region.high.begin(), region.high.end());
  for (std::size_t i = first; i < last; ++i) {
    next_.clear();
    for (std::size_t at = 0; at < rest_.size(); at += width)
      remove_box(rest_.data() + at, arena_[i]);
    rest_.swap(next_);
  }
  for (std::size_t at = 0; at < rest_.size(); at += width) add_gap(rest_.data() + at);
}

// As std::nth_element, but branch-free: its branches are mispredicted at every second number.
std::int64_t branch_free_median(std::span<std::int64_t> numbers) {
  std::size_t first = 0, last = numbers.size();
  const std::size_t middle = last / 2;
  for (int round = 0; last - first > 1 && round < kRounds; ++round) {
    const std::int64_t a = numbers[first], b = numbers[first + (last - first) / 2],
                       c = numbers[last - 1];
    const std::int64_t pivot = std::max(std::min(a, b), std::min(std::max(a, b), c));
    std::size_t less = first, equal = 0;
    for (std::size_t i = first; i < last; ++i) {
      const std::int64_t number = numbers[i];
      numbers[i] = numbers[less];
      numbers[less] = number;
      less += number < pivot ? 1 : 0;
      equal += number == pivot ? 1 : 0;
    }
    if (middle >= less && middle < less + equal) return pivot;
    if (middle >= less && less == first) break;  // minimum as pivot again
    (middle < less ? last : first) = less;
  }
  auto at = numbers.begin() + static_cast<std::ptrdiff_t>(middle);
  std::nth_element(numbers.begin() + static_cast<std::ptrdiff_t>(first), at,
                   numbers.begin() + static_cast<std::ptrdiff_t>(last));
  return *at;
}

// Chooses the median border of the dimension in which the fewest boxes are split; nullopt if every
// sampled box covers the region.
std::optional<Cut> SpaceBisector::choose(const Region& region, std::size_t first, std::size_t last,
                                         std::size_t step) {
  std::optional<Cut> best;
  borders_.resize(2 * ((last - first) / step + 1));
  for (std::size_t d = 0; d < ndim_; ++d) {
    // Branch-free, as below: the comparisons are unpredictable.
    std::size_t count = 0;
    const std::int64_t begin = region.low[d], end = region.high[d];
    for (std::size_t i = first; i < last; i += step) {
      for (std::int64_t border : {low(arena_[i], d), high(arena_[i], d)}) {
        borders_[count] = border;
        const bool is_inside = (border > begin) & (border < end);
        count += is_inside ? 1 : 0;
      }
    }
    if (count == 0) continue;
    Cut cut{d, branch_free_median({borders_.data(), count}), 0, 0};
    std::size_t before = 0, after = 0, all = 0;
    for (std::size_t i = first; i < last; i += step, ++all) {
      before += low(arena_[i], d) < cut.at ? 1 : 0;
      after += high(arena_[i], d) > cut.at ? 1 : 0;
    }
    cut.split = before + after - all;  // each box reaches to at least one side
    cut.uneven = before > after ? before - after : after - before;
    bool better =
        !best || cut.split < best->split || (cut.split == best->split && cut.uneven < best->uneven);
    if (better) best = cut;
  }
  return best;
}

void SpaceBisector::visit(const Region& region, std::size_t first, std::size_t last,
                          std::size_t depth) {
  std::size_t count = last - first;
  visits_ += count + 1;
  bool too_much = visits_ > std::max(kBudget, std::uint64_t{32} * boxes_.size());
  // The lists of all open regions are in the arena: at most 64 bytes per box.
  if (too_much || depth > kMaxDepth || arena_.size() > 16 * boxes_.size() + 65'536) {
    out_.complete = false;
    return;
  }
  if (count <= kFew) return finalize(region, first, last);
  auto cut = choose(region, first, last, count / kSample + 1);
  if (!cut) cut = choose(region, first, last, 1);
  for (std::size_t i = first; i < last; ++i) {
    if (!covers(region, arena_[i])) continue;
    // The region is covered by this box, so every other box overlaps it.
    for (std::size_t j = first; j < last; ++j) {
      if (j != i) add_overlap(arena_[i], arena_[j]);
    }
    return;
  }
  if (!cut) return;  // every box covers the region, handled above
  for (bool right : {false, true}) {
    Region half = region;
    (right ? half.low : half.high)[cut->dim] = cut->at;
    std::size_t start = arena_.size(), end = start;
    arena_.resize(start + count);
    for (std::size_t i = first; i < last; ++i) {
      std::uint32_t box = arena_[i];
      arena_[end] = box;
      end += (right ? high(box, cut->dim) > cut->at : low(box, cut->dim) < cut->at) ? 1 : 0;
    }
    arena_.resize(end);
    visit(half, start, arena_.size(), depth + 1);
    arena_.resize(start);
  }
}

}  // namespace

TilingDefects find_defects(ExtentsView shape, const FlatBoxes& boxes) {
  TilingDefects out;
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return out;
  SpaceBisector halving(boxes, out);
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
