#include "core/maps/joined_rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace shw {
namespace {

constexpr std::size_t kMostPermutedParts = 3;

// Row numbers of join(parts in `order`, pieces), where the rows of part k begin behind those of the
// parts before it.
RowOrder joined_order(const Extents& parts, const std::vector<std::size_t>& order,
                      std::int64_t pieces) {
  Extents begins(parts.size(), 0);
  for (std::size_t k = 1; k < parts.size(); ++k) begins[k] = begins[k - 1] + parts[k - 1];
  RowOrder out;
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    for (std::size_t k : order) {
      const std::int64_t rows = parts[k] / pieces;
      for (std::int64_t r = 0; r < rows; ++r) out.push_back(begins[k] + piece * rows + r);
    }
  }
  return out;
}

RowOrder reversed_order(const RowOrder& rows) {
  RowOrder out(rows.size(), 0);
  for (std::size_t i = 0; i < rows.size(); ++i)
    out[static_cast<std::size_t>(rows[i])] = static_cast<std::int64_t>(i);
  return out;
}

bool can_be_cut(const Extents& parts, std::int64_t pieces) {
  return pieces > 0 && std::all_of(parts.begin(), parts.end(),
                                   [&](std::int64_t part) { return part % pieces == 0; });
}

// Halves of each head in turns, or the reverse, in the parts that `turns` names.
RowOrder rotary_order(const Extents& parts, const std::vector<bool>& turns, std::int64_t head_dim,
                      bool is_reversed) {
  RowOrder out;
  std::int64_t begin = 0;
  const std::int64_t half = head_dim / 2;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    for (std::int64_t r = 0; r < parts[k]; ++r) {
      const std::int64_t head = r / head_dim, at = r % head_dim;
      std::int64_t from = at;
      if (turns[k]) from = is_reversed ? (at % half) * 2 + at / half : (at % 2) * half + at / 2;
      out.push_back(begin + head * head_dim + from);
    }
    begin += parts[k];
  }
  return out;
}

class KnownOrders {
 public:
  explicit KnownOrders(const RowLayout& layout) : layout_(layout) {
    as_listed_.resize(layout.parts.size());
    std::iota(as_listed_.begin(), as_listed_.end(), std::size_t{0});
    expected_ = joined_order(layout.parts, as_listed_, layout.pieces);
    place_ = reversed_order(expected_);
  }

  std::vector<KnownOrder> all() {
    add_pieces();
    add_swapped();
    add_rotary();
    add_rotated();
    return std::move(out_);
  }

 private:
  // `made` was written where the layout was expected, or was read as if it were the layout.
  void add_join(const RowOrder& made, const std::string& text) {
    RowOrder written(made.size()), read(made.size());
    const RowOrder back = reversed_order(made);
    for (std::size_t i = 0; i < made.size(); ++i) {
      written[i] = place_[static_cast<std::size_t>(made[i])];
      read[i] = back[static_cast<std::size_t>(expected_[i])];
    }
    add(std::move(written), text);
    add(std::move(read), text);
  }
  void add(RowOrder from, const std::string& text) {
    bool moves = false;
    for (std::size_t i = 0; i < from.size() && !moves; ++i)
      moves = from[i] != static_cast<std::int64_t>(i);
    if (moves) out_.push_back({std::move(from), text});
  }

  std::string listed(const std::vector<std::size_t>& order) const {
    std::string out;
    for (std::size_t i = 0; i < order.size(); ++i)
      out += (i == 0 ? "" : i + 1 == order.size() ? " and " : ", ") + layout_.part_names[order[i]];
    return out;
  }

  void add_pieces() {
    if (layout_.parts.size() < 2) return;
    std::set<std::int64_t> tried{1, 2, 3, 4, 6, 8, 12, 16, 32, 64};
    for (std::int64_t part : layout_.parts) {
      tried.insert(part);
      if (layout_.head_dim > 0) tried.insert(part / layout_.head_dim);
    }
    for (std::int64_t pieces : tried) {
      if (pieces != layout_.pieces && can_be_cut(layout_.parts, pieces))
        add_join(joined_order(layout_.parts, as_listed_, pieces), pieces_text(pieces));
    }
  }
  std::string pieces_text(std::int64_t pieces) const {
    const std::string parts = listed(as_listed_);
    const std::int64_t most = *std::max_element(layout_.parts.begin(), layout_.parts.end());
    if (pieces == 1)
      return fmt::format(
          "the rows of {} were not regrouped: they stand one part after the other, "
          "and {} groups of them were expected",
          parts, layout_.pieces);
    if (pieces == most && layout_.pieces == 1)
      return fmt::format(
          "the rows of {} are interleaved one by one, and were expected one part "
          "after the other",
          parts);
    return fmt::format("the rows of {} were joined in {} pieces, and {} {} expected", parts, pieces,
                       layout_.pieces, layout_.pieces == 1 ? "was" : "were");
  }

  void add_swapped() {
    if (as_listed_.size() < 2 || as_listed_.size() > kMostPermutedParts) return;
    std::vector<std::size_t> order = as_listed_;
    while (std::next_permutation(order.begin(), order.end())) {
      for (std::int64_t pieces : std::set<std::int64_t>{layout_.pieces, 1}) {
        if (can_be_cut(layout_.parts, pieces))
          add_join(joined_order(layout_.parts, order, pieces),
                   fmt::format("the parts are swapped: they stand as {}, and {} were expected",
                               listed(order), listed(as_listed_)));
      }
    }
  }

  void add_rotary() {
    const std::int64_t head = layout_.head_dim;
    if (head <= 0 || head % 2 != 0) return;
    for (std::int64_t part : layout_.parts) {
      if (part % head != 0) return;
    }
    // Queries and keys; one of them alone; whatever stands alone.
    std::vector<std::vector<bool>> choices{{true}};
    if (layout_.parts.size() == 3)
      choices = {{true, true, false}, {true, false, false}, {false, true, false}};
    else if (layout_.parts.size() != 1)
      return;
    for (const std::vector<bool>& turns : choices) {
      for (const bool is_reversed : {false, true})
        add_turned(turns, rotary_order(layout_.parts, turns, head, is_reversed), is_reversed);
    }
  }
  void add_turned(const std::vector<bool>& turns, const RowOrder& turned, bool is_reversed) {
    std::vector<std::size_t> names;
    for (std::size_t k = 0; k < turns.size(); ++k) {
      if (turns[k]) names.push_back(k);
    }
    RowOrder from(turned.size());
    for (std::size_t i = 0; i < turned.size(); ++i)
      from[i] = place_[static_cast<std::size_t>(turned[static_cast<std::size_t>(expected_[i])])];
    add(std::move(from),
        fmt::format("the two halves of every head of {} are {}: this is another layout of rotary "
                    "positions",
                    listed(names),
                    is_reversed ? "kept apart, and were expected in turns"
                                : "in turns, and were expected one after the other"));
  }

  // What belongs at the end stands at the beginning.
  void add_rotated() {
    if (layout_.parts.size() != 1) return;
    const std::int64_t rows = layout_.parts.front();
    for (std::int64_t by : {std::int64_t{1}, rows - 1, rows / 2}) {
      if (by <= 0 || by >= rows) continue;
      RowOrder from(static_cast<std::size_t>(rows));
      for (std::int64_t i = 0; i < rows; ++i) from[static_cast<std::size_t>(i)] = (i + by) % rows;
      add(std::move(from),
          by == rows / 2 ? std::string("its two halves are swapped")
                         : fmt::format("every row stands one too {}", by == 1 ? "early" : "late"));
    }
  }

  const RowLayout& layout_;
  std::vector<std::size_t> as_listed_;
  RowOrder expected_, place_;  // by row in the layout: its number in the parts; and the reverse
  std::vector<KnownOrder> out_;
};

}  // namespace

std::vector<KnownOrder> known_orders(const RowLayout& layout) {
  if (layout.parts.empty() || layout.part_names.size() != layout.parts.size() ||
      !can_be_cut(layout.parts, layout.pieces))
    return {};
  return KnownOrders(layout).all();
}

}  // namespace shw
