// Determines in which order a mesh counts ranks. The spec and --mesh may list axes in
// different orders. Every tensor split over several ranks tests an order: its writers must
// hold the boxes that the placements give them. An order that one tensor contradicts is not
// used.
#pragma once

#include <optional>
#include <vector>

#include "core/facts/check_input.h"

namespace shw {

// Tensors that match the spec exactly if ranks are counted over `instead`, and do not match if they
// are counted over `believed`.
struct RankOrderMismatch {
  Mesh of_spec;   // the spec's mesh of these tensors
  Mesh believed;  // the user's mesh, or the spec's
  Mesh instead;   // matches the first tensor: the same axes in another order
  std::vector<TensorId> tensors;
  // Other tensors match `believed` and not the order of the spec.
  bool is_contradicted_by_others = false;
  // The only order that matches all tensors that distinguish orders, if there are several such
  // tensors. Tensors that match no order are ignored: they may be damaged.
  std::optional<Mesh> proved = {};
};

struct RankOrders {
  std::vector<RankOrderMismatch> contradicted;
  // Meshes of the spec whose axes the user gave in another order, if no tensor distinguishes the
  // two.
  std::vector<Mesh> undecided;
};

// Tests the orders that RankMap (spec_layout.h) uses for `input` against its tensors. A tensor
// whose rows are split by two axes proves nothing against the spec's order: the axes may have split
// in another order, which is damage of its own (split_orders.h).
RankOrders find_rank_orders(const CheckInput& input);

}  // namespace shw
