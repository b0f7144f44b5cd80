#include "core/learn/fit_order.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "core/facts/reference/match.h"

namespace shw {
namespace {

constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kMostAxes = 6;
// Limits of a map: parts of equal size in a reorder, and parts of unequal size.
constexpr std::size_t kMaxReordered = 4096, kMaxUnequalParts = 250;

std::int64_t signed_size(std::size_t size) {
  return static_cast<std::int64_t>(size);
}

// By line of `to`: its index in `from`; kNowhere if it is missing or occurs there twice.
std::vector<std::size_t> unique_positions_in(const LineSequence& from, const LineSequence& to) {
  PlacesByContent<std::uint64_t> places;
  for (std::size_t i = 0; i < from.size(); ++i) places.add(from[i], i);
  std::vector<std::size_t> out;
  for (const std::uint64_t line : to) out.push_back(places.only(line).value_or(kNowhere));
  // A line that occurs several times is placed next to its neighbour's place.
  for (std::size_t i = 1; i < to.size(); ++i) {
    const std::size_t next = out[i - 1] == kNowhere ? kNowhere : out[i - 1] + 1;
    if (out[i] == kNowhere && next < from.size() && from[next] == to[i]) out[i] = next;
  }
  for (std::size_t i = to.size(); i-- > 1;) {
    if (out[i - 1] == kNowhere && out[i] != kNowhere && out[i] > 0 && from[out[i] - 1] == to[i - 1])
      out[i - 1] = out[i] - 1;
  }
  return out;
}

// An axis of a dim, with its stride in the source.
struct ViewAxis {
  std::size_t size = 0, stride = 0;
};

// Axes, slowest first, if the order is a strided view, otherwise empty. Unknown places are not
// tested here; callers test them.
std::vector<ViewAxis> axes_of(const std::vector<std::size_t>& places) {
  std::vector<ViewAxis> inner;
  std::size_t block = 1;
  while (block < places.size()) {
    if (inner.size() == kMostAxes || places.size() % block != 0) return {};
    if (places[0] == kNowhere || places[block] == kNowhere) return {};
    if (places[block] <= places[0]) return {};
    const std::size_t stride = places[block] - places[0];
    std::size_t count = 2;
    while (count * block < places.size() && places[count * block] == places[0] + count * stride)
      ++count;
    // `count` must divide the rest, because the next axis begins where steps change.
    while (count > 1 && (places.size() / block) % count != 0) --count;
    if (count == 1) return {};
    inner.push_back({count, stride});
    block *= count;
  }
  std::reverse(inner.begin(), inner.end());
  return inner;
}

std::optional<BoundOp> permute_of(const std::vector<std::size_t>& places) {
  const std::vector<ViewAxis> axes = axes_of(places);
  if (axes.size() < 2) return std::nullopt;
  std::vector<std::size_t> by_stride(axes.size());
  std::iota(by_stride.begin(), by_stride.end(), 0);
  std::sort(by_stride.begin(), by_stride.end(),
            [&](std::size_t a, std::size_t b) { return axes[a].stride > axes[b].stride; });
  BoundOp op;
  op.kind = MapOp::Kind::kPermute;
  std::size_t expected = 1;
  for (std::size_t i = by_stride.size(); i-- > 0;) {
    if (axes[by_stride[i]].stride != expected) return std::nullopt;
    expected *= axes[by_stride[i]].size;
  }
  op.order.assign(axes.size(), 0);
  for (std::size_t i = 0; i < by_stride.size(); ++i) {
    op.view.push_back(signed_size(axes[by_stride[i]].size));
    op.order[by_stride[i]] = signed_size(i);
  }
  return op;
}

// Lengths of runs of lines that are adjacent in the source.
struct PlaceRun {
  std::size_t first = 0, count = 0;
};
std::vector<PlaceRun> runs_of(const std::vector<std::size_t>& places) {
  std::vector<PlaceRun> runs;
  for (const std::size_t place : places) {
    if (place == kNowhere) return {};
    if (!runs.empty() && runs.back().first + runs.back().count == place)
      ++runs.back().count;
    else
      runs.push_back({place, 1});
  }
  return runs;
}

// Fits a regroup: parts of unequal sizes cut into pieces and interleaved. Runs then repeat with a
// period that has one run per part.
std::optional<BoundOp> regroup_of(const std::vector<std::size_t>& places) {
  const std::vector<PlaceRun> runs = runs_of(places);
  for (std::size_t period = 2; period * 2 <= runs.size() && period <= 16; ++period) {
    if (runs.size() % period != 0) continue;
    const std::size_t pieces = runs.size() / period;
    BoundOp op;
    op.kind = MapOp::Kind::kRegroup;
    op.pieces = signed_size(pieces);
    std::size_t begin = 0;
    bool fits = true;
    for (std::size_t k = 0; k < period && fits; ++k) {
      const std::size_t size = runs[k].count;
      for (std::size_t i = 0; i < pieces && fits; ++i) {
        const PlaceRun& run = runs[i * period + k];
        fits = run.count == size && run.first == begin + i * size;
      }
      op.parts.push_back(signed_size(size * pieces));
      begin += size * pieces;
    }
    if (fits) return op;
  }
  return std::nullopt;
}

// Fits runs in any order.
std::optional<BoundOp> reorder_of(const std::vector<std::size_t>& places) {
  const std::vector<PlaceRun> runs = runs_of(places);
  if (runs.size() < 2 || runs.size() > kMaxReordered) return std::nullopt;
  std::vector<std::size_t> there(runs.size());
  std::iota(there.begin(), there.end(), 0);
  std::sort(there.begin(), there.end(),
            [&](std::size_t a, std::size_t b) { return runs[a].first < runs[b].first; });
  BoundOp op;
  op.kind = MapOp::Kind::kReorder;
  op.order.assign(runs.size(), 0);
  std::size_t end = 0;
  for (std::size_t i = 0; i < there.size(); ++i) {
    const PlaceRun& run = runs[there[i]];
    if (run.first != end) return std::nullopt;
    end += run.count;
    op.parts.push_back(signed_size(run.count));
    op.order[there[i]] = signed_size(i);
  }
  const bool are_equal = std::all_of(op.parts.begin(), op.parts.end(),
                                     [&](std::int64_t part) { return part == op.parts.front(); });
  return are_equal || runs.size() <= kMaxUnequalParts ? std::optional(op) : std::nullopt;
}

std::vector<std::size_t> inverse(const std::vector<std::size_t>& places) {
  std::vector<std::size_t> out(places.size(), kNowhere);
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i] < out.size()) out[places[i]] = i;
  }
  return out;
}

// Joins the parts: piece 0 of each, then piece 1 of each, and so on.
LineSequence joined_lines(std::span<const LineSequence> from, std::size_t pieces) {
  LineSequence out;
  for (std::size_t i = 0; i < pieces; ++i) {
    for (const LineSequence& part : from) {
      const std::size_t size = part.size() / pieces;
      out.insert(out.end(), part.begin() + static_cast<std::ptrdiff_t>(i * size),
                 part.begin() + static_cast<std::ptrdiff_t>((i + 1) * size));
    }
  }
  return out;
}
std::vector<LineSequence> parts_of(const LineSequence& whole, const Extents& parts) {
  std::vector<LineSequence> out;
  auto at = whole.begin();
  for (std::int64_t part : parts) {
    out.emplace_back(at, at + part);
    at += part;
  }
  return out;
}
LineSequence undo_regroup(const LineSequence& whole, const BoundOp& op) {
  LineSequence out;
  std::int64_t period = 0;
  for (std::int64_t part : op.parts) period += part / op.pieces;
  std::int64_t begin = 0;
  for (std::int64_t part : op.parts) {
    const std::int64_t size = part / op.pieces;
    for (std::int64_t i = 0; i < op.pieces; ++i) {
      const auto at = whole.begin() + i * period + begin;
      out.insert(out.end(), at, at + size);
    }
    begin += size;
  }
  return out;
}
LineSequence permuted_lines(const LineSequence& whole, const BoundOp& op) {
  const Extents strides = row_major_strides(op.view);
  LineSequence out;
  out.reserve(whole.size());
  Extents at(op.view.size(), 0);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::int64_t place = 0;
    for (std::size_t d = 0; d < at.size(); ++d)
      place += at[d] * strides[static_cast<std::size_t>(op.order[d])];
    out.push_back(whole[static_cast<std::size_t>(place)]);
    for (std::size_t d = at.size(); d-- > 0;) {
      if (++at[d] < op.view[static_cast<std::size_t>(op.order[d])]) break;
      at[d] = 0;
    }
  }
  return out;
}

LineSequence reordered_lines(const LineSequence& whole, const BoundOp& op) {
  const std::vector<LineSequence> parts = parts_of(whole, op.parts);
  LineSequence out;
  for (std::int64_t part : op.order) {
    const LineSequence& lines = parts[static_cast<std::size_t>(part)];
    out.insert(out.end(), lines.begin(), lines.end());
  }
  return out;
}

std::optional<BoundOp> fit_single_sequence(const LineSequence& from, const LineSequence& to) {
  const std::vector<std::size_t> places = unique_positions_in(from, to);
  auto fits = [&](const std::optional<BoundOp>& op) {
    return op && apply_ops({&from, 1}, {*op}) == to;
  };
  if (auto op = permute_of(places); fits(op)) return op;
  if (auto op = regroup_of(places); fits(op)) return op;
  auto op = regroup_of(inverse(places));
  if (op) op->kind = MapOp::Kind::kUngroup;
  if (fits(op)) return op;
  op = reorder_of(places);
  return fits(op) ? op : std::nullopt;
}

// Possible numbers of pieces: the common divisors of all sizes.
std::vector<std::size_t> possible_piece_counts(std::span<const LineSequence> from) {
  std::size_t common = 0;
  for (const LineSequence& part : from) common = std::gcd(common, part.size());
  std::vector<std::size_t> out;
  for (std::size_t pieces = 1; pieces * pieces <= common; ++pieces) {
    if (common % pieces != 0) continue;
    out.push_back(pieces);
    if (pieces * pieces != common) out.push_back(common / pieces);
  }
  std::sort(out.begin(), out.end());
  return out;
}

// True if `to` begins with the parts interleaved in `pieces` pieces.
bool begins_with_interleaved_parts(std::span<const LineSequence> from, std::size_t pieces,
                                   const LineSequence& to) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < pieces; ++i) {
    for (const LineSequence& part : from) {
      const std::size_t size = part.size() / pieces;
      if (!std::equal(part.begin() + static_cast<std::ptrdiff_t>(i * size),
                      part.begin() + static_cast<std::ptrdiff_t>((i + 1) * size),
                      to.begin() + static_cast<std::ptrdiff_t>(at)))
        return false;
      at += size;
    }
  }
  return true;
}

// Order in which the sequences first occur in `to`.
std::vector<std::size_t> order_of_first_occurrence(std::span<const LineSequence> from,
                                                   const LineSequence& to) {
  std::unordered_map<std::uint64_t, std::size_t> owner;
  for (std::size_t i = 0; i < from.size(); ++i) {
    for (const std::uint64_t line : from[i]) {
      auto [at, is_new] = owner.try_emplace(line, i);
      if (!is_new && at->second != i) at->second = kNowhere;
    }
  }
  std::vector<std::size_t> order;
  for (const std::uint64_t line : to) {
    auto found = owner.find(line);
    if (found == owner.end() || found->second == kNowhere) continue;
    if (std::find(order.begin(), order.end(), found->second) == order.end())
      order.push_back(found->second);
    if (order.size() == from.size()) break;
  }
  return order;
}

void add_padding(std::size_t used, const LineSequence& to, FittedOrder& fitted) {
  fitted.padded = to.size() - used;
  if (fitted.padded == 0) return;
  BoundOp op;
  op.kind = MapOp::Kind::kPad;
  op.size = signed_size(used);
  op.to = signed_size(to.size());
  fitted.ops.push_back(op);
}

BoundOp join_op_of_parts(std::span<const LineSequence> parts, std::size_t pieces) {
  BoundOp op;
  op.kind = MapOp::Kind::kJoin;
  op.pieces = signed_size(pieces);
  for (const LineSequence& part : parts) op.parts.push_back(signed_size(part.size()));
  return op;
}

// Fits a join followed by another order of the whole.
std::optional<FittedOrder> fit_blocks(std::span<const LineSequence> parts, std::size_t used,
                                      const LineSequence& to, FittedOrder fitted) {
  const LineSequence begin(to.begin(), to.begin() + static_cast<std::ptrdiff_t>(used));
  auto op = fit_single_sequence(joined_lines(parts, 1), begin);
  if (!op) return std::nullopt;
  fitted.ops = {join_op_of_parts(parts, 1), std::move(*op)};
  add_padding(used, to, fitted);
  return fitted;
}

}  // namespace

BoundOp undone(const BoundOp& op) {
  BoundOp out = op;
  if (op.kind == MapOp::Kind::kRegroup) out.kind = MapOp::Kind::kUngroup;
  if (op.kind == MapOp::Kind::kUngroup) out.kind = MapOp::Kind::kRegroup;
  for (std::size_t i = 0; i < op.order.size(); ++i) {
    const auto from = static_cast<std::size_t>(op.order[i]);
    out.order[from] = signed_size(i);
    if (op.kind == MapOp::Kind::kReorder) out.parts[i] = op.parts[from];
    if (op.kind == MapOp::Kind::kPermute) out.view[i] = op.view[from];
  }
  return out;
}

LineSequence apply_ops(std::span<const LineSequence> from, const std::vector<BoundOp>& ops) {
  LineSequence lines = from.front();
  for (const BoundOp& op : ops) {
    if (op.kind == MapOp::Kind::kJoin)
      lines = joined_lines(from, static_cast<std::size_t>(op.pieces));
    else if (op.kind == MapOp::Kind::kRegroup)
      lines = joined_lines(parts_of(lines, op.parts), static_cast<std::size_t>(op.pieces));
    else if (op.kind == MapOp::Kind::kUngroup)
      lines = undo_regroup(lines, op);
    else if (op.kind == MapOp::Kind::kReorder)
      lines = reordered_lines(lines, op);
    else if (op.kind == MapOp::Kind::kPermute)
      lines = permuted_lines(lines, op);
  }
  return lines;
}

std::optional<FittedOrder> fit_order(std::span<const LineSequence> from, const LineSequence& to) {
  std::size_t used = 0;
  for (const LineSequence& part : from) used += part.size();
  if (from.empty() || used > to.size() || used == 0) return std::nullopt;
  FittedOrder fitted;
  if (from.size() == 1) {
    fitted.from = {0};
    const LineSequence begin(to.begin(), to.begin() + static_cast<std::ptrdiff_t>(used));
    if (from.front() != begin) {
      auto op = fit_single_sequence(from.front(), begin);
      if (!op) return std::nullopt;
      fitted.ops = {*op};
    }
    add_padding(used, to, fitted);
    return fitted;
  }
  fitted.from = order_of_first_occurrence(from, to);
  if (fitted.from.size() != from.size()) return std::nullopt;
  std::vector<LineSequence> ordered;
  for (std::size_t i : fitted.from) ordered.push_back(from[i]);
  for (const std::size_t pieces : possible_piece_counts(ordered)) {
    if (!begins_with_interleaved_parts(ordered, pieces, to)) continue;
    fitted.ops = {join_op_of_parts(ordered, pieces)};
    add_padding(used, to, fitted);
    return fitted;
  }
  return fit_blocks(ordered, used, to, std::move(fitted));
}

}  // namespace shw
