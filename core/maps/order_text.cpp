#include "core/maps/order_text.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/tensor/block_orders.h"

namespace shw {
namespace {

bool is_identity_at(const RowOrder& order, std::size_t i) {
  return order[i] == static_cast<std::int64_t>(i);
}

std::optional<std::size_t> first_moved(const RowOrder& order) {
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (!is_identity_at(order, i)) return i;
  }
  return std::nullopt;
}

// Number of pieces from `at` on that stayed together.
std::size_t contiguous_run_length(const RowOrder& order, std::size_t at) {
  std::size_t length = 1;
  while (at + length < order.size() && !is_identity_at(order, at + length) &&
         order[at + length] == order[at] + static_cast<std::int64_t>(length))
    ++length;
  return length;
}

// A moved piece whose original is in its place too, so it is a copy.
std::optional<std::size_t> first_copied_piece(const RowOrder& order) {
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (!is_identity_at(order, i) && is_identity_at(order, static_cast<std::size_t>(order[i])))
      return i;
  }
  return std::nullopt;
}

// Drops trailing pieces that did not move, such as padding.
RowOrder without_unmoved_tail(RowOrder order) {
  while (!order.empty() && is_identity_at(order, order.size() - 1)) order.pop_back();
  return order;
}

// Number of pieces by which all are rotated; 0 if they are not.
std::size_t rotation_count(const RowOrder& order) {
  const auto count = static_cast<std::int64_t>(order.size());
  for (std::int64_t i = 0; i < count; ++i) {
    if (order[static_cast<std::size_t>(i)] != (i + order.front()) % count) return 0;
  }
  return static_cast<std::size_t>(order.front());
}

// "row 3", "rows 3 to 5".
std::string span_text(std::string_view what, std::size_t first, std::size_t count) {
  return count == 1 ? fmt::format("{} {}", what, first)
                    : fmt::format("{}s {} to {}", what, first, first + count - 1);
}

std::string copy_text(const RowOrder& order, std::size_t at, std::string_view what) {
  const std::size_t length = contiguous_run_length(order, at);
  const auto from = static_cast<std::size_t>(order[at]);
  return fmt::format(
      "{} {} a copy of {}: one piece was written twice, and the right data is missing",
      span_text(what, at, length), length == 1 ? "is" : "are", span_text(what, from, length));
}

// Describes a swap of two runs, if nothing else moved.
std::optional<std::string> swap_text(const RowOrder& order, std::size_t at, std::string_view what) {
  const std::size_t length = contiguous_run_length(order, at);
  const auto other = static_cast<std::size_t>(order[at]);
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::size_t expected = i;
    if (i >= at && i < at + length) expected = i - at + other;
    if (i >= other && i < other + length) expected = i - other + at;
    if (order[i] != static_cast<std::int64_t>(expected)) return std::nullopt;
  }
  return fmt::format("{} and {} are swapped", span_text(what, at, length),
                     span_text(what, other, length));
}

}  // namespace

std::optional<Mistake> moved_pieces_mistake(const RowOrder& order, std::string_view what) {
  const auto moved = first_moved(order);
  if (!moved) return std::nullopt;
  if (const auto copy = first_copied_piece(order); copy && !is_permutation_of_indices(order))
    return copy_text(order, *copy, what);
  const RowOrder moving = without_unmoved_tail(order);
  const std::size_t turned = rotation_count(moving), count = moving.size();
  if (turned != 0 && (turned * 2 == count || turned * 2 == count + 1))
    return fmt::format(
        "its two halves are swapped: {} hold what belongs to {}, as pieces of two "
        "ranks in the wrong order",
        span_text(what, 0, count - turned), span_text(what, turned, count - turned));
  if (turned != 0)
    return fmt::format("every {} is {} too {}", what, std::min(turned, count - turned),
                       turned * 2 < count ? "early" : "late");
  if (auto text = swap_text(order, *moved, what)) return text;
  const auto block = static_cast<std::size_t>(mergeable_block_count(order));
  if (block > 1)
    return Mistake{fmt::format("pieces of {} {}s are in another order: {} hold what belongs to {}",
                               block, what, span_text(what, *moved, block),
                               span_text(what, static_cast<std::size_t>(order[*moved]), block)),
                   Mistake::Kind::kOrder};
  std::size_t elsewhere = 0;
  for (std::size_t i = 0; i < order.size(); ++i) elsewhere += is_identity_at(order, i) ? 0U : 1U;
  return Mistake{fmt::format("{} of {} {}s are elsewhere, beginning with {} {}, which holds {} {}",
                             elsewhere, order.size(), what, what, *moved, what, order[*moved]),
                 Mistake::Kind::kOrder};
}

std::string off_by_one_text(std::string_view what, bool is_next) {
  return fmt::format("every {0} holds what belongs to the {1} one: {0}s are off by one", what,
                     is_next ? "next" : "previous");
}

std::string copied_layer_text(std::string_view what, std::int64_t copy, std::int64_t of) {
  return fmt::format("{0} {1} is a copy of {0} {2}, and what belongs to {0} {1} is missing", what,
                     copy, of);
}

std::optional<std::string> layer_order_text(const RowOrder& order, std::string_view what) {
  const auto moved = first_moved(order);
  if (!moved) return std::nullopt;
  const std::size_t turned = rotation_count(order), count = order.size();
  if (count > 2 && (turned == 1 || turned == count - 1)) return off_by_one_text(what, turned == 1);
  if (const auto copy = first_copied_piece(order); copy && !is_permutation_of_indices(order))
    return copied_layer_text(what, static_cast<std::int64_t>(*copy), order[*copy]);
  const std::string example =
      fmt::format("{0} {1} holds what belongs to {0} {2}", what, *moved, order[*moved]);
  if (turned != 0 && turned * 2 == count && count > 2)
    return fmt::format("the two halves of the {}s are swapped: {}", what, example);
  if (swap_text(order, *moved, what) && contiguous_run_length(order, *moved) == 1)
    return fmt::format(
        "{0}s {1} and {2} are swapped: {3}, and the reverse{4}", what, *moved, order[*moved],
        example, count == 2 ? fmt::format(" (of two {}s: off by one, too)", what) : std::string());
  return fmt::format("{}s are stacked in another order: {}", what, example);
}

}  // namespace shw
