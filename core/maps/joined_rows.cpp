#include "core/maps/joined_rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "core/tensor/block_orders.h"

namespace shw {
namespace {

constexpr std::size_t kMaxPermutedParts = 3;

// Rows of a join of the parts in `order`. The rows of part k are numbered after those of the parts
// before it.
RowOrder order_of_joined_parts(const Extents& parts, const std::vector<std::size_t>& order,
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

bool can_be_cut(const Extents& parts, std::int64_t pieces) {
  return pieces > 0 && std::all_of(parts.begin(), parts.end(),
                                   [&](std::int64_t part) { return part % pieces == 0; });
}

enum class RotaryRowOrder : std::uint8_t { kRotaryRowsInterleaved, kRotaryRowsInHalves, kSwapped };

std::int64_t row_after_rotary_reorder(std::int64_t at, std::int64_t rows, RotaryRowOrder turn) {
  const std::int64_t half = rows / 2;
  switch (turn) {
    case RotaryRowOrder::kRotaryRowsInterleaved:
      return (at % 2) * half + at / 2;
    case RotaryRowOrder::kRotaryRowsInHalves:
      return (at % half) * 2 + at / half;
    case RotaryRowOrder::kSwapped:
      break;
  }
  return (at + half) % rows;
}

std::string_view text_of(RotaryRowOrder turn) {
  switch (turn) {
    case RotaryRowOrder::kRotaryRowsInterleaved:
      return "are interleaved, and were expected contiguously";
    case RotaryRowOrder::kRotaryRowsInHalves:
      return "are kept apart, and were expected in turns";
    case RotaryRowOrder::kSwapped:
      break;
  }
  return "are swapped";
}

// Reorders the halves of the rotary rows of each head, in the parts that `turns` selects.
RowOrder order_with_rotary_halves_changed(const RowLayout& layout, const std::vector<bool>& turns,
                                          RotaryRowOrder turn) {
  RowOrder out;
  std::int64_t begin = 0;
  const std::int64_t head_dim = layout.head_dim, first = layout.rotary_begin;
  const std::int64_t rows = layout.rotary_rows > 0 ? layout.rotary_rows : head_dim;
  for (std::size_t k = 0; k < layout.parts.size(); ++k) {
    for (std::int64_t r = 0; r < layout.parts[k]; ++r) {
      const std::int64_t at = r % head_dim;
      const bool is_turned = turns[k] && at >= first && at < first + rows;
      out.push_back(begin + r - at +
                    (is_turned ? first + row_after_rotary_reorder(at - first, rows, turn) : at));
    }
    begin += layout.parts[k];
  }
  return out;
}

// Puts the rotary rows, which are the last ones of each head, before its other rows.
RowOrder order_with_rotary_rows_first(const RowLayout& layout) {
  RowOrder out;
  for (std::int64_t r = 0; r < layout.parts.front(); ++r) {
    const std::int64_t at = r % layout.head_dim;
    out.push_back(r - at + (at + layout.rotary_begin) % layout.head_dim);
  }
  return out;
}

// Distributes the heads of the first part round-robin to the groups.
RowOrder order_of_round_robin_heads(const RowLayout& layout) {
  RowOrder out;
  std::int64_t begin = 0;
  const std::int64_t heads = layout.parts.front() / layout.head_dim;
  const std::int64_t each = heads / layout.pieces;
  for (std::int64_t h = 0; h < heads; ++h) {
    const std::int64_t of = h % each * layout.pieces + h / each;
    for (std::int64_t r = 0; r < layout.head_dim; ++r) out.push_back(of * layout.head_dim + r);
  }
  for (std::size_t k = 1; k < layout.parts.size(); ++k) {
    begin += layout.parts[k - 1];
    for (std::int64_t r = 0; r < layout.parts[k]; ++r) out.push_back(begin + r);
  }
  return out;
}

class KnownOrders {
 public:
  explicit KnownOrders(const RowLayout& layout) : layout_(layout) {
    listed_part_order_.resize(layout.parts.size());
    std::iota(listed_part_order_.begin(), listed_part_order_.end(), std::size_t{0});
    expected_ = order_of_joined_parts(layout.parts, listed_part_order_, layout.pieces);
    place_ = inverse_of(expected_);
  }

  std::vector<KnownOrder> all() {
    add_pieces();
    add_swapped();
    add_rotary();
    add_round_robin_heads();
    add_rotated_row_orders();
    return std::move(out_);
  }

 private:
  // Adds both errors: `made` was written instead of the layout, or was read as if it were the
  // layout.
  void add_join(const RowOrder& made, const Mistake& mistake) {
    RowOrder written(made.size()), read(made.size());
    const RowOrder back = inverse_of(made);
    for (std::size_t i = 0; i < made.size(); ++i) {
      written[i] = place_[static_cast<std::size_t>(made[i])];
      read[i] = back[static_cast<std::size_t>(expected_[i])];
    }
    add(std::move(written), mistake);
    add(std::move(read), mistake);
  }
  void add(RowOrder from, const Mistake& mistake) {
    bool moves = false;
    for (std::size_t i = 0; i < from.size() && !moves; ++i)
      moves = from[i] != static_cast<std::int64_t>(i);
    if (moves) out_.push_back({std::move(from), mistake});
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
        add_join(order_of_joined_parts(layout_.parts, listed_part_order_, pieces),
                 wrong_piece_count_mistake(pieces));
    }
  }
  Mistake wrong_piece_count_mistake(std::int64_t pieces) const {
    const std::string parts = listed(listed_part_order_);
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
    return {fmt::format("the rows of {} were joined in {} pieces, and {} {} expected", parts,
                        pieces, layout_.pieces, layout_.pieces == 1 ? "was" : "were"),
            Mistake::Kind::kOrder};
  }

  void add_swapped() {
    if (listed_part_order_.size() < 2 || listed_part_order_.size() > kMaxPermutedParts) return;
    std::vector<std::size_t> order = listed_part_order_;
    while (std::next_permutation(order.begin(), order.end())) {
      for (std::int64_t pieces : std::set<std::int64_t>{layout_.pieces, 1}) {
        if (can_be_cut(layout_.parts, pieces))
          add_join(order_of_joined_parts(layout_.parts, order, pieces),
                   fmt::format("the parts are swapped: they are as {}, and {} were expected",
                               listed(order), listed(listed_part_order_)));
      }
    }
  }

  void add_rotary() {
    const std::int64_t head = layout_.head_dim;
    const std::int64_t rows = layout_.rotary_rows > 0 ? layout_.rotary_rows : head;
    if (head <= 0 || rows % 2 != 0 || layout_.rotary_begin > head - rows) return;
    for (std::int64_t part : layout_.parts) {
      if (part % head != 0) return;
    }
    // Rotary parts: queries and keys together, one of them, or a single part.
    std::vector<std::vector<bool>> choices{{true}};
    if (layout_.parts.size() == 3)
      choices = {{true, true, false}, {true, false, false}, {false, true, false}};
    else if (layout_.parts.size() != 1)
      return;
    if (layout_.rotary_rows > 0 && layout_.rotary_begin + rows == head)
      add_parts_order(order_with_rotary_rows_first(layout_),
                      fmt::format("the rotary rows of every head of {} come before its other rows, "
                                  "and were expected after them",
                                  listed(listed_part_order_)));
    for (const std::vector<bool>& turns : choices) {
      for (const RotaryRowOrder turn :
           {RotaryRowOrder::kRotaryRowsInterleaved, RotaryRowOrder::kRotaryRowsInHalves,
            RotaryRowOrder::kSwapped})
        add_rotary_order(turns, turn);
    }
  }
  void add_rotary_order(const std::vector<bool>& turns, RotaryRowOrder turn) {
    std::vector<std::size_t> names;
    for (std::size_t k = 0; k < turns.size(); ++k) {
      if (turns[k]) names.push_back(k);
    }
    add_parts_order(order_with_rotary_halves_changed(layout_, turns, turn),
                    fmt::format("the two halves of {} head of {} {}: this is another layout of "
                                "rotary positions",
                                layout_.rotary_rows > 0 ? "the rotary rows of every" : "every",
                                listed(names), text_of(turn)));
  }
  void add_round_robin_heads() {
    const std::int64_t head = layout_.head_dim;
    if (layout_.parts.size() != 3 || head <= 0 || layout_.parts.front() % head != 0 ||
        layout_.parts.front() / head % layout_.pieces != 0)
      return;
    const std::string text = fmt::format(
        "the heads of {} were dealt to the {} groups in turns: each group was expected "
        "to have heads that follow one another",
        layout_.part_names.front(), layout_.pieces);
    const RowOrder dealt = order_of_round_robin_heads(layout_);
    add_parts_order(dealt, text);
    add_parts_order(inverse_of(dealt), text);
  }
  // Adds an order that is given for the parts one after the other.
  void add_parts_order(const RowOrder& parts, const std::string& text) {
    RowOrder from(parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i)
      from[i] = place_[static_cast<std::size_t>(parts[static_cast<std::size_t>(expected_[i])])];
    add(std::move(from), text);
  }

  // If the tensor has one part: adds its rows rotated by one row up, one row down and by half, with
  // and without the padding rows.
  void add_rotated_row_orders() {
    if (layout_.parts.size() != 1) return;
    const std::int64_t all = layout_.parts.front(), padding = layout_.padding_from;
    for (const std::int64_t rows : {all, padding}) {
      if (rows <= 0 || rows > all) continue;
      add_rotated_row_orders(rows, 1, "every row is one too early");
      add_rotated_row_orders(rows, rows - 1, "every row is one too late");
      if (rows % 2 == 0) add_rotated_row_orders(rows, rows / 2, "its two halves are swapped");
    }
    if (padding > 0 && padding < all)
      add_rotated_row_orders(all, padding,
                             "the padding comes before the rows, and was expected after them");
  }
  void add_rotated_row_orders(std::int64_t rows, std::int64_t by, const std::string& text) {
    RowOrder from(static_cast<std::size_t>(layout_.parts.front()));
    std::iota(from.begin(), from.end(), std::int64_t{0});
    for (std::int64_t i = 0; i < rows; ++i) from[static_cast<std::size_t>(i)] = (i + by) % rows;
    add(std::move(from), text);
  }

  const RowLayout& layout_;
  std::vector<std::size_t> listed_part_order_;
  RowOrder expected_, place_;  // by row of the layout: its number in the parts; and the inverse
  std::vector<KnownOrder> out_;
};

}  // namespace

std::vector<std::size_t> parts_of_rows(const RowLayout& layout) {
  std::vector<std::size_t> out;
  if (!can_be_cut(layout.parts, layout.pieces)) return out;
  for (std::int64_t piece = 0; piece < layout.pieces; ++piece) {
    for (std::size_t k = 0; k < layout.parts.size(); ++k)
      out.insert(out.end(), static_cast<std::size_t>(layout.parts[k] / layout.pieces), k);
  }
  return out;
}

std::vector<KnownOrder> known_orders(const RowLayout& layout) {
  if (layout.parts.empty() || layout.part_names.size() != layout.parts.size() ||
      !can_be_cut(layout.parts, layout.pieces))
    return {};
  return KnownOrders(layout).all();
}

}  // namespace shw
