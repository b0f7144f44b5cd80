// In which order a mesh counts the ranks. A spec says it by the order of its axes and a person by
// that of --mesh, and the two may differ. Every tensor that several ranks cut tells which is right:
// its writers hold the boxes that the placements give them. An order that one tensor contradicts is
// the ground of nothing.
#pragma once

#include <optional>
#include <vector>

#include "core/facts/check_input.h"

namespace shw {

// Tensors that lie as the spec says, to the box, if ranks are counted over `instead`, and do not
// where they are counted over `believed`.
struct OrderContradicted {
  Mesh of_spec;   // the mesh whose ranks they are
  Mesh believed;  // what the person gave, or the spec's own
  Mesh instead;   // as the first of them lies: the same axes in another order
  std::vector<TensorId> tensors;
  // Others lie as the spec says by what is believed, and not by the spec's own order.
  bool is_disputed = false;
  // Of the spec's own order: the only one by which all tensors lie that tell orders apart, where
  // several do. Those that lie by no order have no voice: they may be what is damaged.
  std::optional<Mesh> proved = {};
};

struct RankOrders {
  std::vector<OrderContradicted> contradicted;
  // Meshes of the spec whose axes the person gave in another order, where no tensor tells who is
  // right.
  std::vector<Mesh> undecided;
};

// The orders that RankMap (spec_layout.h) goes by for `input`, held against its tensors. One whose
// rows two axes cut proves nothing against the spec's own order of the axes: those axes may have
// cut in another order than the spec says, which is damage of its own (cut_orders.h).
RankOrders judge_rank_orders(const CheckInput& input);

}  // namespace shw
